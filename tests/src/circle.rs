//! Circular memory of interpreted GPUs.

use torre_ptx::{Buffer, Device};
use torre_runtime::gpu::device::DeviceError;

/// Bytes that are compared at once.
const CHUNK: usize = 1 << 10;

/// Memory that lies twice in a row: a buffer of both places, which are made alike after each piece of work. So a kernel
/// does not see at one place the values that it writes at the other one, as on a GPU.
#[derive(Debug)]
pub(crate) struct Circle {
    buffer: Buffer,
    /// Bytes at both places before the last piece of work.
    content: Vec<u8>,
}

fn failed(message: impl ToString) -> DeviceError {
    DeviceError::Failed {
        operation: "writing",
        message: message.to_string(),
    }
}

impl Circle {
    /// Memory of `bytes` bytes, all of them 0.
    pub fn new(device: &mut Device, bytes: usize) -> Circle {
        let content = vec![0u8; bytes];
        Circle {
            buffer: device.upload_bytes(content.repeat(2)),
            content,
        }
    }

    /// Both places.
    pub fn buffer(&self) -> Buffer {
        self.buffer
    }

    /// Bytes of one place.
    pub fn bytes(&self) -> usize {
        self.content.len()
    }

    /// Makes both places alike.
    pub fn settle(&mut self, device: &mut Device) -> Result<(), DeviceError> {
        let content = &mut self.content;
        let (one, other) = device.read(self.buffer).split_at(content.len());
        if one == content && other == content {
            return Ok(());
        }
        let mut changed = Vec::new();
        let places = one.chunks(CHUNK).zip(other.chunks(CHUNK));
        for (index, (own, (one, other))) in content.chunks_mut(CHUNK).zip(places).enumerate() {
            if one == own && other == own {
                continue;
            }
            for ((own, one), other) in own.iter_mut().zip(one).zip(other) {
                if one != other && *one != *own && *other != *own {
                    return Err(failed("a byte was written at both of its places"));
                }
                *own = if one == own { *other } else { *one };
            }
            changed.push(index * CHUNK..index * CHUNK + own.len());
        }
        for chunk in changed {
            for place in [0, content.len()] {
                let written =
                    device.write(self.buffer, place + chunk.start, &content[chunk.clone()]);
                written.map_err(failed)?;
            }
        }
        Ok(())
    }
}
