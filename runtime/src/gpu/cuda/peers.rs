//! Several GPUs of a machine.
//!
//! An event of one GPU's context can be waited for by streams of another one. Copies go from one memory to the other,
//! directly where the GPUs can access each other's memory; otherwise the driver takes them through the host's memory.

use super::super::queues::{ByteLines, Peers, Queues, Signal, WorkQueue};
use super::{Address, CudaDevice, DeviceError, check, sys};
use cudarc::driver::sys::CUresult;
use std::ptr;

/// GPUs that compute together.
#[derive(Debug)]
pub struct CudaPeers {
    devices: Vec<CudaDevice>,
    /// Whether each pair of neighbours has access to each other's memory.
    direct: bool,
}

/// The longest distance between lines that the driver copies in one go.
const MOST_STRIDE: u64 = i32::MAX as u64;

impl CudaPeers {
    pub fn new(devices: Vec<CudaDevice>) -> Result<CudaPeers, DeviceError> {
        let mut direct = true;
        for pair in devices.windows(2) {
            direct &= open(&pair[0], &pair[1])? && open(&pair[1], &pair[0])?;
        }
        Ok(CudaPeers { devices, direct })
    }

    pub fn devices(&self) -> &[CudaDevice] {
        &self.devices
    }

    /// Whether copies go directly from each GPU to its neighbours.
    pub fn is_direct(&self) -> bool {
        self.direct
    }
}

/// Lets a GPU access the memory of another one; `false` if it cannot.
fn open(from: &CudaDevice, to: &CudaDevice) -> Result<bool, DeviceError> {
    if from.device == to.device {
        return Ok(true);
    }
    let mut can = 0;
    driver!(
        "asking about access to another GPU",
        cuDeviceCanAccessPeer(&mut can, from.device, to.device)
    )?;
    if can == 0 {
        return Ok(false);
    }
    from.enter()?;
    // SAFETY: both contexts are alive; access ends with them.
    let opened = unsafe { sys::cuCtxEnablePeerAccess(to.context, 0) };
    if opened == CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
        return Ok(true);
    }
    check("opening access to another GPU", opened)?;
    Ok(true)
}

impl Peers for CudaPeers {
    fn count(&self) -> usize {
        self.devices.len()
    }

    fn device(&self, number: usize) -> &dyn Queues {
        &self.devices[number]
    }

    fn follow_peer(
        &self,
        number: usize,
        queue: WorkQueue,
        of: usize,
        signal: Signal,
    ) -> Result<(), DeviceError> {
        let event = self.devices[of].event_of(signal)?;
        // This makes the waiting GPU the one that calls mean.
        let stream = self.devices[number].stream_of(queue)?;
        driver!("ordering work", cuStreamWaitEvent(stream, event, 0))
    }

    fn send(
        &self,
        [from, to]: [usize; 2],
        queue: WorkQueue,
        [source, target]: [Address; 2],
        lines: ByteLines,
    ) -> Result<(), DeviceError> {
        let [one, other] = [&self.devices[from], &self.devices[to]];
        let stream = one.stream_of(queue)?;
        let ByteLines {
            length,
            stride,
            count,
        } = lines;
        if stride <= MOST_STRIDE && count > 1 {
            // A box of one plane, whose rows are the lines.
            let copy = sys::CUDA_MEMCPY3D_PEER {
                srcXInBytes: 0,
                srcY: 0,
                srcZ: 0,
                srcLOD: 0,
                srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcHost: ptr::null(),
                srcDevice: source.0,
                srcArray: ptr::null_mut(),
                srcContext: one.context,
                srcPitch: stride as usize,
                srcHeight: count as usize,
                dstXInBytes: 0,
                dstY: 0,
                dstZ: 0,
                dstLOD: 0,
                dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstHost: ptr::null_mut(),
                dstDevice: target.0,
                dstArray: ptr::null_mut(),
                dstContext: other.context,
                dstPitch: stride as usize,
                dstHeight: count as usize,
                WidthInBytes: length as usize,
                Height: count as usize,
                Depth: 1,
            };
            return driver!("copying to another GPU", cuMemcpy3DPeerAsync(&copy, stream));
        }
        for line in 0..count {
            let [source, target] = [source, target].map(|place| place.0 + line * stride);
            driver!(
                "copying to another GPU",
                cuMemcpyPeerAsync(
                    target,
                    other.context,
                    source,
                    one.context,
                    length as usize,
                    stream
                )
            )?;
        }
        Ok(())
    }
}
