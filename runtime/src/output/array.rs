//! Arrays as files see them: a shape in C order and values along the last axis, wherever they lie.

use std::fmt;
use std::io;

/// The type of the values of an array in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl ElementType {
    /// Bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// `f32` or `f64`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`, with their bytes in files (little endian).
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static
{
    /// Which of the two it is.
    const TYPE: ElementType;
    /// Exact.
    fn to_f64(self) -> f64;
    /// Rounds to nearest.
    fn from_f64(value: f64) -> Self;
    /// Writes `values` into `bytes`, which is as long as they need.
    fn encode(values: &[Self], bytes: &mut [u8]);
    /// The inverse of `encode`.
    fn decode(bytes: &[u8], values: &mut [Self]);
    /// The shortest decimal text that reads back as the same value; `nan`, `inf` and `-inf` as others read them.
    fn shortest(self) -> String;
}

macro_rules! element {
    ($t:ident, $variant:ident, $n:literal) => {
        impl Element for $t {
            const TYPE: ElementType = ElementType::$variant;
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(value: f64) -> Self {
                value as $t
            }
            fn encode(values: &[Self], bytes: &mut [u8]) {
                for (value, bytes) in values.iter().zip(bytes.as_chunks_mut::<$n>().0) {
                    *bytes = value.to_le_bytes();
                }
            }
            fn decode(bytes: &[u8], values: &mut [Self]) {
                for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<$n>().0) {
                    *value = $t::from_le_bytes(*bytes);
                }
            }
            fn shortest(self) -> String {
                if self.is_nan() {
                    return "nan".into();
                }
                let size = self.abs();
                if self == 0.0 || self.is_infinite() || (1e-4..1e15).contains(&size) {
                    format!("{self}")
                } else {
                    format!("{self:e}")
                }
            }
        }
    };
}
element!(f32, F32, 4);
element!(f64, F64, 8);

/// An array of one to three axes in C order, read by stretches of rows.
pub trait Rows<T: Element>: Sync {
    /// Values per axis, slowest first.
    fn shape(&self) -> &[usize];
    /// Fills `out` with consecutive values along the last axis, from index `first` on. `first` has one
    /// entry per axis, and `first.last() + out.len()` is at most the length of the last axis.
    fn read(&self, first: &[usize], out: &mut [T]);
}

/// A borrowed array with strides: padded, reversed or permuted axes of one slice.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    shape: Vec<usize>,
    /// In elements.
    strides: Vec<isize>,
    offset: usize,
}

impl<'a, T: Element> View<'a, T> {
    /// Element `(i, j, ..)` is `data[offset + i * strides[0] + j * strides[1] + ..]`. None where the numbers of
    /// axes differ or an element would lie outside `data`.
    pub fn strided(
        data: &'a [T],
        offset: usize,
        shape: &[usize],
        strides: &[isize],
    ) -> Option<Self> {
        if shape.len() != strides.len() || shape.is_empty() {
            return None;
        }
        let mut low = i128::try_from(offset).ok()?;
        let mut high = low;
        for (&length, &stride) in shape.iter().zip(strides) {
            let reach = (length as i128 - 1).max(0).checked_mul(stride as i128)?;
            low = low.checked_add(reach.min(0))?;
            high = high.checked_add(reach.max(0))?;
        }
        let empty = shape.contains(&0);
        (empty || low >= 0 && high < data.len() as i128).then(|| Self {
            data,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            offset,
        })
    }

    /// All of `data`, along one axis.
    pub fn line(data: &'a [T]) -> Self {
        Self {
            data,
            shape: vec![data.len()],
            strides: vec![1],
            offset: 0,
        }
    }

    /// All of `data`, without gaps. None where the shape needs another number of values.
    pub fn contiguous(data: &'a [T], shape: &[usize]) -> Option<Self> {
        if count(shape)? != data.len() {
            return None;
        }
        let mut strides = vec![1isize; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] =
                strides[axis].checked_mul(isize::try_from(shape[axis].max(1)).ok()?)?;
        }
        Self::strided(data, 0, shape, &strides)
    }
}

impl<T: Element> Rows<T> for View<'_, T> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, first: &[usize], out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let start = first
            .iter()
            .zip(&self.strides)
            .fold(self.offset as isize, |at, (&i, &stride)| {
                at + i as isize * stride
            });
        match self.strides.last() {
            Some(1) => out.copy_from_slice(&self.data[start as usize..][..out.len()]),
            last => {
                let step = last.copied().unwrap_or(0);
                for (k, value) in out.iter_mut().enumerate() {
                    *value = self.data[(start + k as isize * step) as usize];
                }
            }
        }
    }
}

/// An array whose stretches of rows a function copies.
pub struct RowsFrom<F> {
    shape: Vec<usize>,
    read: F,
}

impl<F> RowsFrom<F> {
    /// `read` gets the arguments of [`Rows::read`].
    pub fn new(shape: &[usize], read: F) -> Self {
        Self {
            shape: shape.to_vec(),
            read,
        }
    }
}

impl<T: Element, F: Fn(&[usize], &mut [T]) + Sync> Rows<T> for RowsFrom<F> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, first: &[usize], out: &mut [T]) {
        (self.read)(first, out);
    }
}

/// A plane (or a line) of an array: one axis fixed at one index.
pub struct Slice<'a, T, R: ?Sized> {
    rows: &'a R,
    axis: usize,
    index: usize,
    shape: Vec<usize>,
    element: std::marker::PhantomData<fn() -> T>,
}

impl<'a, T: Element, R: Rows<T> + ?Sized> Slice<'a, T, R> {
    /// None where the array has no such axis, no such index, or no second axis.
    pub fn new(rows: &'a R, axis: usize, index: usize) -> Option<Self> {
        let mut shape = rows.shape().to_vec();
        if shape.len() < 2 || index >= *shape.get(axis)? {
            return None;
        }
        shape.remove(axis);
        Some(Self {
            rows,
            axis,
            index,
            shape,
            element: std::marker::PhantomData,
        })
    }
}

impl<T: Element, R: Rows<T> + ?Sized> Rows<T> for Slice<'_, T, R> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, first: &[usize], out: &mut [T]) {
        let mut at = first.to_vec();
        at.insert(self.axis, self.index);
        if self.axis < self.shape.len() {
            return self.rows.read(&at, out);
        }
        // The fixed axis is the contiguous one: values of one slice row lie in different rows.
        for value in out.chunks_mut(1) {
            self.rows.read(&at, value);
            at[self.axis - 1] += 1;
        }
    }
}

/// An array of either type.
#[derive(Clone, Copy)]
pub enum AnyRows<'a> {
    /// Of `f32`.
    F32(&'a dyn Rows<f32>),
    /// Of `f64`.
    F64(&'a dyn Rows<f64>),
}

impl AnyRows<'_> {
    /// Type of the values.
    pub fn element(&self) -> ElementType {
        match self {
            Self::F32(_) => ElementType::F32,
            Self::F64(_) => ElementType::F64,
        }
    }

    /// Values per axis.
    pub fn shape(&self) -> &[usize] {
        match self {
            Self::F32(rows) => rows.shape(),
            Self::F64(rows) => rows.shape(),
        }
    }

    /// As the function `stream`.
    pub fn stream(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::F32(rows) => stream(*rows, sink),
            Self::F64(rows) => stream(*rows, sink),
        }
    }
}

/// Values of an array of this shape; none on overflow.
pub fn count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m))
}

/// Calls `each` with the index of the first value of each row, in C order. Nothing for an empty array.
pub fn for_each_row<E>(
    shape: &[usize],
    mut each: impl FnMut(&[usize]) -> Result<(), E>,
) -> Result<(), E> {
    if shape.contains(&0) {
        return Ok(());
    }
    let mut first = vec![0; shape.len()];
    loop {
        each(&first)?;
        if !advance(&mut first, shape, shape.len().saturating_sub(1)) {
            return Ok(());
        }
    }
}

/// Steps `index` to the next one in C order over the first `axes` axes; false after the last.
pub(super) fn advance(index: &mut [usize], shape: &[usize], axes: usize) -> bool {
    for axis in (0..axes).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return true;
        }
        index[axis] = 0;
    }
    false
}

/// Bytes that are collected before they go to a file.
const BLOCK: usize = 1 << 20;

/// Passes all values in C order, as little-endian bytes, to `sink`, in blocks of about a megabyte.
pub fn stream<T: Element>(
    rows: &(impl Rows<T> + ?Sized),
    mut sink: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let size = T::TYPE.size();
    let length = rows.shape().last().copied().unwrap_or(0);
    let mut values = vec![T::default(); length.min(BLOCK / size)];
    let mut block = vec![0u8; BLOCK];
    let mut used = 0;
    for_each_row(rows.shape(), |first| {
        let mut at = first.to_vec();
        let mut left = length;
        while left > 0 {
            let n = left.min(values.len());
            if used + n * size > block.len() {
                sink(&block[..used])?;
                used = 0;
            }
            rows.read(&at, &mut values[..n]);
            T::encode(&values[..n], &mut block[used..used + n * size]);
            used += n * size;
            left -= n;
            if let Some(last) = at.last_mut() {
                *last += n;
            }
        }
        io::Result::Ok(())
    })?;
    sink(&block[..used])
}

/// All values in C order.
pub fn collect<T: Element>(rows: &(impl Rows<T> + ?Sized)) -> Vec<T> {
    let length = rows.shape().last().copied().unwrap_or(0);
    let mut values = vec![T::default(); count(rows.shape()).unwrap_or(0)];
    let mut chunks = values.chunks_mut(length.max(1));
    let all = for_each_row(rows.shape(), |first| match chunks.next() {
        Some(row) => {
            rows.read(first, row);
            Ok(())
        }
        None => Err(()),
    });
    debug_assert!(all.is_ok());
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_padded_layout_streams_without_its_padding() {
        // Shape (2, 2, 3), rows padded to 5, planes to 12.
        let data: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let view = View::strided(&data, 1, &[2, 2, 3], &[12, 5, 1]).unwrap();
        let expected = [1., 2., 3., 6., 7., 8., 13., 14., 15., 18., 19., 20.];
        assert_eq!(collect(&view), expected);
        let mut bytes = Vec::new();
        stream(&view, |b| {
            bytes.extend_from_slice(b);
            Ok(())
        })
        .unwrap();
        let mut back = [0f32; 12];
        f32::decode(&bytes, &mut back);
        assert_eq!(back, expected);
    }

    #[test]
    fn views_outside_their_data_are_refused() {
        let data = [0f64; 10];
        assert!(View::strided(&data, 0, &[2, 5], &[5, 1]).is_some());
        assert!(View::strided(&data, 1, &[2, 5], &[5, 1]).is_none());
        assert!(View::strided(&data, 9, &[10], &[-1]).is_some());
        assert!(View::strided(&data, 8, &[10], &[-1]).is_none());
        assert!(View::strided(&data, 0, &[2], &[5, 1]).is_none());
        assert!(View::strided(&data, 0, &[usize::MAX, usize::MAX], &[1, 1]).is_none());
        assert!(View::contiguous(&data, &[3, 3]).is_none());
        assert!(View::contiguous(&data[..0], &[3, 0]).is_some());
    }

    #[test]
    fn slices_fix_any_axis() {
        let data: Vec<f64> = (0..24).map(|i| i as f64).collect();
        let view = View::contiguous(&data, &[2, 3, 4]).unwrap();
        let x = Slice::new(&view, 0, 1).unwrap();
        assert_eq!((x.shape(), collect(&x)[0]), (&[3, 4][..], 12.0));
        let y = Slice::new(&view, 1, 2).unwrap();
        assert_eq!(collect(&y), [8., 9., 10., 11., 20., 21., 22., 23.]);
        let z = Slice::new(&view, 2, 3).unwrap();
        assert_eq!(collect(&z), [3., 7., 11., 15., 19., 23.]);
        let line = Slice::new(&z, 0, 1).unwrap();
        assert_eq!(collect(&line), [15., 19., 23.]);
        assert!(Slice::new(&view, 3, 0).is_none() && Slice::new(&view, 0, 2).is_none());
        assert!(Slice::<f64, _>::new(&line, 0, 0).is_none());
    }

    #[test]
    fn functions_are_arrays_too() {
        let rows = RowsFrom::new(&[2, 3], |first: &[usize], out: &mut [f64]| {
            for (k, value) in out.iter_mut().enumerate() {
                *value = (10 * first[0] + first[1] + k) as f64;
            }
        });
        assert_eq!(collect(&rows), [0., 1., 2., 10., 11., 12.]);
        let column = Slice::new(&rows, 1, 2).unwrap();
        assert_eq!(collect(&column), [2., 12.]);
    }

    #[test]
    fn long_rows_are_streamed_in_blocks() {
        let data: Vec<f64> = (0..300_000).map(|i| i as f64).collect();
        let view = View::contiguous(&data, &[1, 300_000]).unwrap();
        let mut bytes = Vec::new();
        stream(&view, |b| {
            assert!(b.len() <= BLOCK);
            bytes.extend_from_slice(b);
            Ok(())
        })
        .unwrap();
        let mut back = vec![0f64; data.len()];
        f64::decode(&bytes, &mut back);
        assert_eq!(back, data);
    }

    #[test]
    fn decimal_text_is_short_and_exact() {
        assert_eq!(0.1f32.shortest(), "0.1");
        assert_eq!((-1e-9f64).shortest(), "-1e-9");
        assert_eq!(f64::NAN.shortest(), "nan");
        assert_eq!(f32::NEG_INFINITY.shortest(), "-inf");
        assert_eq!(3e14f64.shortest(), "300000000000000");
    }
}
