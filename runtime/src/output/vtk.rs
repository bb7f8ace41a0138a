//! VTK ImageData (`.vti`): XML with the values appended raw, as ParaView reads it, and `.pvd` collections over time.
//! Format: "VTK File Formats", The VTK User's Guide.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use super::array::{self, AnyRows, Element, ElementType, Rows, count};
use super::atomic::{AtomicFile, write_file};
use super::error::{Attempt, Cause, FileError};

/// Bytes that are turned into VTK's order at once.
const BLOCK: usize = 1 << 26;

/// Where the values of an image lie in space.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Which of x, y and z are axes of the arrays, in this order.
    pub axes: [bool; 3],
    /// Position of the first value: the stagger times the cell size, and the plane of a slice.
    pub origin: [f64; 3],
    /// Distance of neighbouring values.
    pub spacing: [f64; 3],
    /// Time of the values, for animations.
    pub time: Option<f64>,
}

/// Writes arrays of one shape as point data of one image. ParaView shows the names.
pub fn write(path: &Path, grid: &Grid, arrays: &[(&str, AnyRows<'_>)]) -> Result<(), FileError> {
    let shape = arrays.first().map_or(&[][..], |(_, rows)| rows.shape());
    let mut extents = [1usize; 3];
    let axes = (0..3).filter(|&axis| grid.axes[axis]);
    for (axis, &length) in axes.clone().zip(shape) {
        extents[axis] = length;
    }
    let misfit = |found: &[usize], expected: &[usize]| {
        let (found, expected) = (found.to_vec(), expected.to_vec());
        FileError::new(path, Attempt::Write, Cause::Shape { expected, found })
    };
    if axes.count() != shape.len() {
        return Err(misfit(shape, &extents));
    }
    if let Some((_, other)) = arrays.iter().find(|(_, rows)| rows.shape() != shape) {
        return Err(misfit(other.shape(), shape));
    }
    let count = count(shape).ok_or_else(|| misfit(shape, &[]))?;

    let mut file = AtomicFile::create(path)?;
    file.put(head(grid, &extents, count, arrays).as_bytes())?;
    for (_, rows) in arrays {
        file.put(&((count * rows.element().size()) as u64).to_le_bytes())?;
        let sink = &mut |bytes: &[u8]| file.write_all(bytes);
        match rows {
            AnyRows::F32(rows) => stream_reversed(*rows, BLOCK, sink),
            AnyRows::F64(rows) => stream_reversed(*rows, BLOCK, sink),
        }
        .map_err(FileError::io(path, Attempt::Write))?;
    }
    file.put(b"\n  </AppendedData>\n</VTKFile>\n")?;
    file.commit()
}

/// Writes a `.pvd` that lists images (paths relative to it) with their times.
pub fn write_collection(path: &Path, images: &[(f64, &str)]) -> Result<(), FileError> {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n\
         <VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">\n  <Collection>\n",
    );
    for (time, file) in images {
        let file = escape(file);
        let _ = writeln!(
            text,
            "    <DataSet timestep=\"{time:?}\" part=\"0\" file=\"{file}\"/>"
        );
    }
    text.push_str("  </Collection>\n</VTKFile>\n");
    write_file(path, text.as_bytes())
}

fn head(grid: &Grid, extents: &[usize; 3], count: usize, arrays: &[(&str, AnyRows<'_>)]) -> String {
    let [x, y, z] = extents.map(|n| n as i128 - 1);
    let extent = format!("0 {x} 0 {y} 0 {z}");
    let triple = |[x, y, z]: [f64; 3]| format!("{x:?} {y:?} {z:?}");
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n\
         <VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n  \
         <ImageData WholeExtent=\"{extent}\" Origin=\"{}\" Spacing=\"{}\">\n",
        triple(grid.origin),
        triple(grid.spacing)
    );
    if let Some(time) = grid.time {
        let _ = writeln!(
            text,
            "    <FieldData>\n      <DataArray type=\"Float64\" Name=\"TimeValue\" \
             NumberOfTuples=\"1\" format=\"ascii\">{time:?}</DataArray>\n    </FieldData>"
        );
    }
    let first = arrays
        .first()
        .map_or(String::new(), |(name, _)| escape(name));
    let _ = writeln!(
        text,
        "    <Piece Extent=\"{extent}\">\n      <PointData Scalars=\"{first}\">"
    );
    let mut offset = 0;
    for (name, rows) in arrays {
        let kind = match rows.element() {
            ElementType::F32 => "Float32",
            ElementType::F64 => "Float64",
        };
        let name = escape(name);
        let _ = writeln!(
            text,
            "        <DataArray type=\"{kind}\" Name=\"{name}\" format=\"appended\" offset=\"{offset}\"/>"
        );
        offset += 8 + count as u64 * rows.element().size() as u64;
    }
    text.push_str(
        "      </PointData>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n   _",
    );
    text
}

/// Passes all values to `sink` with the first axis fastest, reading stretches of rows and turning blocks of
/// about `block` bytes (at least one plane of the last axis).
fn stream_reversed<T: Element>(
    rows: &(impl Rows<T> + ?Sized),
    block: usize,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let Some((&length, leading)) = rows.shape().split_last() else {
        return Ok(());
    };
    let plane = count(leading).unwrap_or(0);
    if plane == 0 || length == 0 {
        return Ok(());
    }
    let size = T::TYPE.size();
    let depth = (block / (plane * size)).clamp(1, length);
    let mut values = vec![T::default(); plane * depth];
    let mut run = vec![T::default(); depth];
    let mut bytes = vec![0; (1 << 20).min(plane * depth * size)];
    // The leading axes from the slowest to the fastest in VTK's order.
    let reversed: Vec<usize> = leading.iter().rev().copied().collect();
    let mut first = vec![0; rows.shape().len()];
    for start in (0..length).step_by(depth) {
        let depth = depth.min(length - start);
        let mut index = vec![0; reversed.len()];
        for at in 0..plane {
            for (to, from) in first.iter_mut().zip(index.iter().rev()) {
                *to = *from;
            }
            first[reversed.len()] = start;
            rows.read(&first, &mut run[..depth]);
            for (k, &value) in run[..depth].iter().enumerate() {
                values[k * plane + at] = value;
            }
            array::advance(&mut index, &reversed, reversed.len());
        }
        for part in values[..plane * depth].chunks(bytes.len() / size) {
            let bytes = &mut bytes[..part.len() * size];
            T::encode(part, bytes);
            sink(bytes)?;
        }
    }
    Ok(())
}

/// Text inside an XML attribute.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no other control characters.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::array::View;

    fn grid(axes: [bool; 3]) -> Grid {
        Grid {
            axes,
            origin: [0.5e-9, 0.0, 0.25],
            spacing: [1e-9, 1.0, 0.5],
            time: Some(2.5),
        }
    }

    #[test]
    fn x_runs_fastest_whatever_the_blocks() {
        let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let view = View::contiguous(&data, &[2, 3, 4]).unwrap();
        let mut expected = Vec::new();
        for z in 0..4 {
            for y in 0..3 {
                for x in 0..2 {
                    expected.push((x * 12 + y * 4 + z) as f32);
                }
            }
        }
        for block in [0, 24, 50, 72, 1000] {
            let mut bytes = Vec::new();
            let mut sink = |b: &[u8]| {
                bytes.extend_from_slice(b);
                Ok(())
            };
            stream_reversed(&view, block, &mut sink).unwrap();
            let mut back = [0f32; 24];
            f32::decode(&bytes, &mut back);
            assert_eq!(back, *expected);
        }
    }

    #[test]
    fn the_file_has_the_declared_structure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.vti");
        let data: Vec<f32> = (0..6).map(|i| i as f32).collect();
        let wide: Vec<f64> = (0..6).map(|i| -i as f64).collect();
        let a = View::contiguous(&data, &[2, 3]).unwrap();
        let b = View::contiguous(&wide, &[2, 3]).unwrap();
        let arrays = [("E.z", AnyRows::F32(&a)), ("<b>", AnyRows::F64(&b))];
        write(&path, &grid([true, false, true]), &arrays).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for part in [
            "WholeExtent=\"0 1 0 0 0 2\" Origin=\"5e-10 0.0 0.25\" Spacing=\"1e-9 1.0 0.5\"",
            "Name=\"E.z\" format=\"appended\" offset=\"0\"",
            "Name=\"&lt;b&gt;\" format=\"appended\" offset=\"32\"",
            "NumberOfTuples=\"1\" format=\"ascii\">2.5</DataArray>",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let start = bytes.windows(4).position(|w| w == b"\">\n ").unwrap();
        let start = start + bytes[start..].iter().position(|&b| b == b'_').unwrap() + 1;
        let head: [u8; 8] = bytes[start..start + 8].try_into().unwrap();
        assert_eq!(u64::from_le_bytes(head), 24);
        let mut back = [0f32; 6];
        f32::decode(&bytes[start + 8..], &mut back);
        assert_eq!(back, [0., 3., 1., 4., 2., 5.]);
        let head: [u8; 8] = bytes[start + 32..start + 40].try_into().unwrap();
        assert_eq!(u64::from_le_bytes(head), 48);
        assert!(bytes[start + 88..].starts_with(b"\n  </AppendedData>"));
    }

    #[test]
    fn shapes_must_fit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.vti");
        let a = View::contiguous(&[0f32; 6], &[2, 3]).unwrap();
        let b = View::contiguous(&[0f32; 6], &[3, 2]).unwrap();
        let one = [("a", AnyRows::F32(&a))];
        let two = [("a", AnyRows::F32(&a)), ("b", AnyRows::F32(&b))];
        for refused in [
            write(&path, &grid([true; 3]), &one),
            write(&path, &grid([true, true, false]), &two),
        ] {
            assert!(matches!(refused.unwrap_err().cause, Cause::Shape { .. }));
        }
        assert!(!path.exists());
    }

    #[test]
    fn collections_list_their_images() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pvd");
        write_collection(&path, &[(0.0, "a-0.vti"), (1e-15, "a-1.vti")]).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains("<DataSet timestep=\"1e-15\" part=\"0\" file=\"a-1.vti\"/>"));
    }
}
