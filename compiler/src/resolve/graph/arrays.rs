//! Arrays of files as nodes.

use super::{Graph, Node, NodeId, Shift};
use crate::lattice::Position;
use crate::scheme::{FileId, StaticFile};

/// The number of the first array that does not fit.
const UNFIT: usize = 1 << 24;

impl Graph {
    /// The values of an array at a position.
    pub fn file(&mut self, path: &str, position: Position) -> NodeId {
        let index = placed(&mut self.files, path, position);
        self.add(Node::File(FileId(index as u32), Shift::default()))
    }

    /// An array that does not have the shape that its position needs. Values that are made of it are refused where
    /// these are used.
    pub fn unfit_file(&mut self, path: &str, position: Position) -> NodeId {
        let index = placed(&mut self.unfit, path, position);
        self.add(Node::File(FileId((UNFIT + index) as u32), Shift::default()))
    }

    /// The first array that does not fit under a root.
    pub fn unfit_under(&mut self, root: NodeId) -> Option<StaticFile> {
        if self.unfit.is_empty() {
            return None;
        }
        let mut found = None;
        self.visit(root, &mut |node| {
            if let Node::File(file, _) = node
                && file.index() >= UNFIT
            {
                found = found.or(Some(file));
            }
        });
        found.map(|file| self.array(file).clone())
    }

    pub(super) fn array(&self, file: FileId) -> &StaticFile {
        match file.index().checked_sub(UNFIT) {
            Some(index) => &self.unfit[index],
            None => &self.files[file.index()],
        }
    }
}

/// The index of an array at a position in a list, which then has it.
fn placed(list: &mut Vec<StaticFile>, path: &str, position: Position) -> usize {
    let known = list
        .iter()
        .position(|f| f.path == path && f.position == position);
    known.unwrap_or_else(|| {
        list.push(StaticFile {
            path: path.to_string(),
            position,
        });
        list.len() - 1
    })
}
