//! Pictures one after the other, as an animated PNG.

use std::path::Path;

use super::canvas::{Canvas, failed};
use crate::output::atomic::AtomicFile;
use crate::output::error::FileError;

/// Frames per second.
const RATE: u16 = 12;

/// Writes an animation of `frames` pictures, which `draw` makes one by one. All get the size of the first one.
/// Nothing is written where there are none.
pub fn write(
    path: &Path,
    frames: usize,
    mut draw: impl FnMut(usize) -> Result<Canvas, FileError>,
) -> Result<(), FileError> {
    let Ok(count @ 1..) = u32::try_from(frames) else {
        return Ok(());
    };
    let mut frame = draw(0)?;
    let (width, height) = (frame.width(), frame.height());
    let mut file = AtomicFile::create(path)?;
    let fail = |error| failed(path, error);
    let mut encoder = frame.encoder(&mut file);
    // 0: again and again.
    encoder.set_animated(count, 0).map_err(fail)?;
    encoder.set_frame_delay(1, RATE).map_err(fail)?;
    let mut writer = encoder.write_header().map_err(fail)?;
    for next in 1..=frames {
        writer.write_image_data(&frame.bytes()).map_err(fail)?;
        if next < frames {
            frame = draw(next)?.resized(width, height);
        }
    }
    writer.finish().map_err(fail)?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_animation_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.apng");
        let colours = [[1, 2, 3], [4, 5, 6], [7, 8, 9]];
        write(&path, 3, |i| {
            // The last one is larger, and is cut off.
            let mut canvas = Canvas::new(4 + i / 2, 3);
            canvas.fill(0, 0, 9, 9, colours[i]);
            Ok(canvas)
        })
        .unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        assert_eq!(reader.info().animation_control().unwrap().num_frames, 3);
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        for colour in colours {
            reader.next_frame(&mut bytes).unwrap();
            assert_eq!(bytes, colour.repeat(12));
            let control = reader.info().frame_control().unwrap();
            assert_eq!((control.delay_num, control.delay_den), (1, RATE));
        }
        assert!(reader.next_frame(&mut bytes).is_err());
        let none = folder.path().join("none.apng");
        write(&none, 0, |_| unreachable!()).unwrap();
        assert!(!none.exists());
    }
}
