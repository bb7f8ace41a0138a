//! Zarr v3 stores: a folder of chunks with JSON metadata that xarray opens as a data set with coordinates.
//!
//! A store holds *series* (one more axis, time, in front) and single arrays. Arrays whose axes have the same name but
//! other positions get coordinates of their own: `x` at whole cells, `x_half` between them, and a number where sizes
//! or origins differ (`x_2`); in the same way `time`, `time_2` for series with other times. Values are stored
//! uncompressed, little endian, in chunks of at most 16 MiB; values of a chunk beyond the array are NaN.
//! Format: Zarr core specification version 3.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::array::{self, Element, ElementType, Rows};
use super::atomic::AtomicFolder;
use super::error::{Attempt, Cause, FileError};
use super::open::open;

/// Bytes of a chunk, at most.
const CHUNK: usize = 1 << 24;
/// Series of smaller frames have several frames in a chunk, up to this many bytes.
const SMALL: usize = 1 << 20;
/// Letters of a name, at most, without a suffix that makes it another one.
const LONGEST: usize = 199;
/// The first part of the keys of chunks.
const KEY: &str = "c";
/// The file that makes a folder a Zarr store.
pub const METADATA: &str = "zarr.json";
/// The name of the axis of series.
pub const TIME: &str = "time";
/// Longer metadata are not read.
const MAX_BYTES: u64 = 256 << 20;

/// Attributes of a store or an array, such as `units`.
pub type Attributes = Map<String, Value>;

/// Positions along one axis of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Name of the axis: `x`.
    pub name: String,
    /// Position of the first value.
    pub start: f64,
    /// Distance of neighbouring values.
    pub spacing: f64,
    /// Unit of the positions.
    pub units: Option<String>,
}

/// A series of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesId(usize);

/// A store being written under a temporary name.
#[derive(Debug)]
pub struct ZarrStore {
    folder: AtomicFolder,
    attributes: Attributes,
    /// Name of the axis of time and its unit.
    time: (String, Option<String>),
    coordinates: Vec<Coordinate>,
    arrays: Vec<Array>,
}

/// One coordinate array.
#[derive(Debug)]
struct Coordinate {
    /// Unique in the store.
    name: String,
    dimension: Dimension,
    length: usize,
}

#[derive(Debug)]
struct Array {
    name: String,
    element: ElementType,
    /// Of a frame.
    shape: Vec<usize>,
    /// Of a frame.
    chunk: Vec<usize>,
    /// Names of the coordinates of a frame.
    axes: Vec<String>,
    attributes: Attributes,
    /// None for a single array.
    series: Option<Series>,
}

#[derive(Debug)]
struct Series {
    times: Vec<f64>,
    /// Frames in a chunk.
    frames: usize,
    /// The frames of an incomplete chunk.
    pending: Vec<u8>,
}

/// The times of the frames of each series in a store, by the names that the series were given; none where there is no
/// store. A store that cannot be read, or not entirely, is an error.
pub fn series_of(store: &Path) -> Result<BTreeMap<String, Vec<f64>>, FileError> {
    let read = |name: &str| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(&store.join(name))?
            .take(MAX_BYTES)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let failed = |name: &str, error| FileError::io(&store.join(name), Attempt::Read)(error);
    let text = match read(METADATA) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_nothing(store) => {
            return Ok(BTreeMap::new());
        }
        text => text.map_err(|error| failed(METADATA, error))?,
    };
    let no_store = || {
        let error = io::Error::new(io::ErrorKind::InvalidData, "it has no list of arrays");
        failed(METADATA, error)
    };
    let group: Value = serde_json::from_slice(&text).map_err(|_| no_store())?;
    let arrays = &group["consolidated_metadata"]["metadata"];
    let arrays = arrays.as_object().ok_or_else(no_store)?;
    let mut series = BTreeMap::new();
    for (name, array) in arrays {
        let axis = array["dimension_names"][0].as_str();
        let Some(axis) = axis.filter(|axis| *axis != name && axis.starts_with(TIME)) else {
            continue;
        };
        let frames = array["shape"][0].as_u64().ok_or_else(no_store)?;
        let mut times = Vec::new();
        if frames > 0 {
            let chunk = chunk_name(axis, None, &[0]);
            let bytes = read(&chunk).map_err(|error| failed(&chunk, error))?;
            let values = bytes.as_chunks::<8>().0.iter();
            times.extend(values.map(|bytes| f64::from_le_bytes(*bytes)));
            if (times.len() as u64) < frames {
                return Err(failed(&chunk, io::ErrorKind::UnexpectedEof.into()));
            }
        }
        let long = array["attributes"]["long_name"].as_str();
        series.insert(long.unwrap_or(name).to_owned(), times);
    }
    Ok(series)
}

/// Whether there is nothing at a path, or an empty folder.
fn is_nothing(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

impl ZarrStore {
    /// Whether a store can be called `path`: nothing is there, or an older store.
    pub fn check(path: &Path) -> Result<(), FileError> {
        AtomicFolder::check(path, METADATA)
    }

    /// Starts a store that will be called `path`; an older store of that name is replaced at the end.
    pub fn create(
        path: &Path,
        time_name: &str,
        time_units: Option<&str>,
        attributes: Attributes,
    ) -> Result<Self, FileError> {
        Ok(Self {
            folder: AtomicFolder::create(path, METADATA)?,
            attributes,
            time: (time_name.into(), time_units.map(Into::into)),
            coordinates: Vec::new(),
            arrays: Vec::new(),
        })
    }

    /// Declares a series of arrays of this shape.
    pub fn add_series(
        &mut self,
        name: &str,
        element: ElementType,
        shape: &[usize],
        dimensions: &[Dimension],
        attributes: Attributes,
    ) -> Result<SeriesId, FileError> {
        let bytes = array::count(shape)
            .and_then(|n| n.checked_mul(element.size()))
            .unwrap_or(usize::MAX);
        let series = Series {
            times: Vec::new(),
            frames: (SMALL / bytes.max(1)).clamp(1, 1024),
            pending: Vec::new(),
        };
        self.declare(name, element, shape, dimensions, attributes, Some(series))
    }

    /// Adds a frame of a series. Frames come in the order of time.
    pub fn append<T: Element>(
        &mut self,
        id: SeriesId,
        time: f64,
        rows: &(impl Rows<T> + ?Sized),
    ) -> Result<(), FileError> {
        let Some(array) = self.arrays.get_mut(id.0) else {
            return Ok(());
        };
        check_frame(&self.folder, array, rows)?;
        let Some(series) = &mut array.series else {
            return Ok(());
        };
        let frame = series.times.len();
        series.times.push(time);
        if series.frames == 1 {
            return write_chunks(&self.folder, array, Some(frame), rows);
        }
        let pending = &mut series.pending;
        let sink = |bytes: &[u8]| {
            pending.extend_from_slice(bytes);
            Ok(())
        };
        array::stream(rows, sink).map_err(FileError::io(self.folder.target(), Attempt::Write))?;
        if (frame + 1).is_multiple_of(series.frames) {
            flush(&self.folder, array)?;
        }
        Ok(())
    }

    /// Writes a single array, without time.
    pub fn write<T: Element>(
        &mut self,
        name: &str,
        rows: &(impl Rows<T> + ?Sized),
        dimensions: &[Dimension],
        attributes: Attributes,
    ) -> Result<(), FileError> {
        let id = self.declare(name, T::TYPE, rows.shape(), dimensions, attributes, None)?;
        write_chunks(&self.folder, &self.arrays[id.0], None, rows)
    }

    /// Writes coordinates and metadata, and gives the store its final name.
    pub fn commit(mut self) -> Result<(), FileError> {
        let mut all = Map::new();
        let mut times: Vec<(String, Vec<f64>)> = Vec::new();
        let arrays = self.arrays.iter().map(|array| array.name.clone());
        let coordinates = self.coordinates.iter().map(|known| known.name.clone());
        let taken: BTreeSet<String> = arrays.chain(coordinates).collect();
        for array in &mut self.arrays {
            flush(&self.folder, array)?;
            let mut shape = array.shape.clone();
            let mut chunk = array.chunk.clone();
            let mut axes = array.axes.clone();
            if let Some(series) = &array.series {
                let known = times.iter().find(|(_, t)| *t == series.times);
                let name = match known {
                    Some((name, _)) => name.clone(),
                    None => {
                        let name = (1..)
                            .map(|n| numbered(&self.time.0, n))
                            .find(|name| {
                                !taken.contains(name) && times.iter().all(|(t, _)| t != name)
                            })
                            .unwrap_or_default();
                        times.push((name.clone(), series.times.clone()));
                        name
                    }
                };
                shape.insert(0, series.times.len());
                chunk.insert(0, series.frames);
                axes.insert(0, name);
            }
            let metadata = metadata(array.element, &shape, &chunk, &axes, &array.attributes);
            all.insert(array.name.clone(), metadata);
        }
        for Coordinate {
            name,
            dimension,
            length,
        } in &self.coordinates
        {
            let position = |i| dimension.start + i as f64 * dimension.spacing;
            let positions: Vec<f64> = (0..*length).map(position).collect();
            let metadata = write_coordinate(&self.folder, name, &positions, &dimension.units)?;
            all.insert(name.clone(), metadata);
        }
        for (name, times) in &times {
            let metadata = write_coordinate(&self.folder, name, times, &self.time.1)?;
            all.insert(name.clone(), metadata);
        }
        for (name, metadata) in &all {
            write_json(&self.folder, &format!("{name}/{METADATA}"), metadata)?;
        }
        let group = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": self.attributes,
            "consolidated_metadata": {
                "kind": "inline",
                "must_understand": false,
                "metadata": all,
            },
        });
        write_json(&self.folder, METADATA, &group)?;
        self.folder.commit()
    }

    fn declare(
        &mut self,
        name: &str,
        element: ElementType,
        shape: &[usize],
        dimensions: &[Dimension],
        mut attributes: Attributes,
        series: Option<Series>,
    ) -> Result<SeriesId, FileError> {
        if dimensions.len() != shape.len() {
            let cause = Cause::Shape {
                expected: vec![0; dimensions.len()],
                found: shape.to_vec(),
            };
            return Err(FileError::new(self.folder.target(), Attempt::Write, cause));
        }
        let free = self.free_name(name, dimensions);
        if free != name {
            attributes.insert("long_name".into(), name.into());
        }
        let mut axes = Vec::new();
        for (dimension, &length) in dimensions.iter().zip(shape) {
            axes.push(self.coordinate(dimension, length));
        }
        self.arrays.push(Array {
            name: free,
            element,
            shape: shape.to_vec(),
            chunk: chunk_shape(shape, element.size()),
            axes,
            attributes,
            series,
        });
        Ok(SeriesId(self.arrays.len() - 1))
    }

    /// The name of a new array: `name` as far as the format allows it, with `_` behind it as long as something else has
    /// that name, or could be taken for it.
    fn free_name(&self, name: &str, dimensions: &[Dimension]) -> String {
        let axes = dimensions.iter().map(|d| allowed(&d.name));
        let axes: Vec<String> = axes.chain([self.time.0.clone()]).collect();
        let taken =
            |name: &str| self.is_taken(name) || axes.iter().any(|axis| is_coordinate(name, axis));
        let mut free = allowed(name);
        while taken(&free) {
            free.push('_');
        }
        free
    }

    /// Whether something in the store has this name.
    fn is_taken(&self, name: &str) -> bool {
        name == KEY
            || self.arrays.iter().any(|array| array.name == name)
            || self.coordinates.iter().any(|known| known.name == name)
    }

    /// The name of the coordinate with these positions, new if there is none yet.
    fn coordinate(&mut self, dimension: &Dimension, length: usize) -> String {
        let same = |known: &&Coordinate| known.dimension == *dimension && known.length == length;
        if let Some(known) = self.coordinates.iter().find(same) {
            return known.name.clone();
        }
        let cell = (dimension.start / dimension.spacing).rem_euclid(1.0);
        let between = (cell - 0.5).abs() < 0.25;
        let half = if between { "_half" } else { "" };
        let base = format!("{}{half}", allowed(&dimension.name));
        let name = (1..)
            .map(|n| numbered(&base, n))
            .find(|name| !self.is_taken(name))
            .unwrap_or_default();
        self.coordinates.push(Coordinate {
            name: name.clone(),
            dimension: dimension.clone(),
            length,
        });
        name
    }
}

/// `x`, `x_2`, `x_3`, ...
fn numbered(base: &str, n: usize) -> String {
    if n == 1 {
        base.into()
    } else {
        format!("{base}_{n}")
    }
}

/// A name as the specification allows it, without signs that file systems or shells take badly.
fn allowed(name: &str) -> String {
    let plain = |c| if is_plain(c) { c } else { '_' };
    let mut allowed: String = name.chars().map(plain).take(LONGEST).collect();
    let is_path = allowed.chars().all(|c| c == '.' || c == ' ');
    if is_path || allowed.starts_with("__") {
        allowed.insert_str(0, "of");
    }
    allowed
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-+=@ ".contains(c)
}

/// Whether a coordinate of an axis may have this name: `x`, `x_half`, `x_2`, `x_half_2`.
fn is_coordinate(name: &str, axis: &str) -> bool {
    let Some(rest) = name.strip_prefix(axis) else {
        return false;
    };
    let rest = rest.strip_prefix("_half").unwrap_or(rest);
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty() || rest.strip_prefix('_').is_some_and(is_number)
}

fn check_frame<T: Element>(
    folder: &AtomicFolder,
    array: &Array,
    rows: &(impl Rows<T> + ?Sized),
) -> Result<(), FileError> {
    if rows.shape() == array.shape && T::TYPE == array.element {
        return Ok(());
    }
    let cause = Cause::Shape {
        expected: array.shape.clone(),
        found: rows.shape().to_vec(),
    };
    Err(FileError::new(
        &folder.target().join(&array.name),
        Attempt::Write,
        cause,
    ))
}

/// Halves the longest axis until a chunk is small enough.
fn chunk_shape(shape: &[usize], size: usize) -> Vec<usize> {
    let mut chunk: Vec<usize> = shape.iter().map(|&n| n.max(1)).collect();
    while array::count(&chunk)
        .and_then(|n| n.checked_mul(size))
        .is_none_or(|bytes| bytes > CHUNK)
    {
        // The first of the longest: the contiguous axis is divided last.
        let longest = chunk.iter().copied().max().unwrap_or(1);
        if let Some(axis) = chunk.iter_mut().find(|n| **n == longest) {
            *axis = axis.div_ceil(2);
        }
    }
    chunk
}

/// Writes the incomplete chunk of a series, if there is one.
fn flush(folder: &AtomicFolder, array: &mut Array) -> Result<(), FileError> {
    let Some(series) = &mut array.series else {
        return Ok(());
    };
    if series.pending.is_empty() {
        return Ok(());
    }
    // A chunk of several frames holds whole frames: they are far smaller than a chunk may be.
    let frame: usize = array.shape.iter().product::<usize>() * array.element.size();
    let present = series.pending.len() / frame;
    let missing = (series.frames - present) * frame / array.element.size();
    series.pending.extend(nans(array.element, missing));
    let number = (series.times.len() - 1) / series.frames;
    let name = chunk_name(&array.name, Some(number), &vec![0; array.shape.len()]);
    folder.write(&name, &series.pending)?;
    series.pending.clear();
    Ok(())
}

fn nans(element: ElementType, n: usize) -> Vec<u8> {
    match element {
        ElementType::F32 => f32::NAN.to_le_bytes().repeat(n),
        ElementType::F64 => f64::NAN.to_le_bytes().repeat(n),
    }
}

/// Writes the chunks of one frame, each read by stretches of rows.
fn write_chunks<T: Element>(
    folder: &AtomicFolder,
    array: &Array,
    frame: Option<usize>,
    rows: &(impl Rows<T> + ?Sized),
) -> Result<(), FileError> {
    let (shape, chunk) = (&array.shape, &array.chunk);
    let (Some(&length), Some(&width)) = (shape.last(), chunk.last()) else {
        return Ok(());
    };
    if shape.contains(&0) {
        return Ok(());
    }
    let axes = shape.len();
    let grid: Vec<usize> = (0..axes).map(|a| shape[a].div_ceil(chunk[a])).collect();
    let mut values = vec![T::default(); chunk.iter().product()];
    let mut bytes = vec![0; values.len() * T::TYPE.size()];
    let mut at = vec![0; axes];
    loop {
        values.fill(T::from_f64(f64::NAN));
        let run = width.min(length - at[axes - 1] * width);
        let mut inner = vec![0; axes];
        for row in values.chunks_mut(width) {
            let first: Vec<usize> = (0..axes).map(|a| at[a] * chunk[a] + inner[a]).collect();
            if first.iter().zip(shape).all(|(i, n)| i < n) {
                rows.read(&first, &mut row[..run]);
            }
            array::advance(&mut inner, chunk, axes - 1);
        }
        T::encode(&values, &mut bytes);
        folder.write(&chunk_name(&array.name, frame, &at), &bytes)?;
        if !array::advance(&mut at, &grid, axes) {
            return Ok(());
        }
    }
}

fn chunk_name(array: &str, frame: Option<usize>, index: &[usize]) -> String {
    let mut name = format!("{array}/c");
    for i in frame.iter().chain(index) {
        name.push_str(&format!("/{i}"));
    }
    name
}

fn write_coordinate(
    folder: &AtomicFolder,
    name: &str,
    values: &[f64],
    units: &Option<String>,
) -> Result<Value, FileError> {
    let mut bytes = vec![0; values.len() * 8];
    f64::encode(values, &mut bytes);
    if !values.is_empty() {
        folder.write(&chunk_name(name, None, &[0]), &bytes)?;
    }
    let mut attributes = Map::new();
    if let Some(units) = units {
        attributes.insert("units".into(), json!(units));
    }
    let (shape, chunk) = ([values.len()], [values.len().max(1)]);
    let axes = [name.to_owned()];
    Ok(metadata(
        ElementType::F64,
        &shape,
        &chunk,
        &axes,
        &attributes,
    ))
}

fn metadata(
    element: ElementType,
    shape: &[usize],
    chunk: &[usize],
    axes: &[String],
    attributes: &Attributes,
) -> Value {
    let data_type = match element {
        ElementType::F32 => "float32",
        ElementType::F64 => "float64",
    };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": axes,
        "attributes": attributes,
    })
}

fn write_json(folder: &AtomicFolder, name: &str, value: &Value) -> Result<(), FileError> {
    folder.write(name, format!("{value:#}\n").as_bytes())
}

#[cfg(test)]
mod tests;
