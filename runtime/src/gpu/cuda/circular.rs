//! Memory that is mapped twice in a row.

use super::answer::check;
use crate::gpu::device::DeviceError;
use cudarc::driver::sys::{self, CUresult};
use std::ptr;

/// Memory of a circular buffer, where it lies, and how much of it there is.
#[derive(Debug)]
pub(super) struct Circle {
    handle: sys::CUmemGenericAllocationHandle,
    place: u64,
    bytes: usize,
    /// The number of its mappings up to now.
    mapped: usize,
}

/// The kind of memory that a device gives for mapping.
fn property(device: sys::CUdevice) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: device,
        },
        win32HandleMetaData: ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// Bytes in multiples of which a device maps memory; `None` where it does not map it at addresses of choice.
pub(super) fn granularity(device: sys::CUdevice) -> Result<Option<u64>, DeviceError> {
    let mut supported = 0;
    driver!(
        "asking about a device",
        cuDeviceGetAttribute(
            &mut supported,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED,
            device
        )
    )?;
    if supported == 0 {
        return Ok(None);
    }
    let mut bytes = 0;
    let option = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    driver!(
        "asking about a device",
        cuMemGetAllocationGranularity(&mut bytes, &property(device), option)
    )?;
    Ok((bytes > 0).then_some(bytes as u64))
}

impl Circle {
    /// Takes memory of a device, of which `available` bytes are free, and maps it twice in a row.
    pub fn take(device: sys::CUdevice, bytes: u64, available: u64) -> Result<Circle, DeviceError> {
        let short = DeviceError::Memory {
            needed: bytes,
            available,
        };
        if bytes > available {
            return Err(short);
        }
        let mut handle = 0;
        // SAFETY: as in `driver!`.
        let taken = unsafe { sys::cuMemCreate(&mut handle, bytes as usize, &property(device), 0) };
        if taken == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(short);
        }
        check("taking the GPU's memory", taken)?;
        let mut circle = Circle {
            handle,
            place: 0,
            bytes: bytes as usize,
            mapped: 0,
        };
        match circle.map(device) {
            Ok(()) => Ok(circle),
            Err(error) => {
                circle.give_back();
                Err(error)
            }
        }
    }

    /// The address of its first byte.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Gives it back; a failure here cannot be helped.
    pub fn give_back(self) {
        for turn in 0..self.mapped {
            let place = self.place + (turn * self.bytes) as u64;
            let _ = driver!("giving back memory", cuMemUnmap(place, self.bytes));
        }
        if self.place != 0 {
            let _ = driver!(
                "giving back memory",
                cuMemAddressFree(self.place, 2 * self.bytes)
            );
        }
        let _ = driver!("giving back memory", cuMemRelease(self.handle));
    }

    /// Maps it twice, from one address on.
    fn map(&mut self, device: sys::CUdevice) -> Result<(), DeviceError> {
        driver!(
            "taking addresses",
            cuMemAddressReserve(&mut self.place, 2 * self.bytes, 0, 0, 0)
        )?;
        for turn in 0..2 {
            let place = self.place + (turn * self.bytes) as u64;
            driver!(
                "mapping the GPU's memory",
                cuMemMap(place, self.bytes, 0, self.handle, 0)
            )?;
            self.mapped += 1;
        }
        let access = sys::CUmemAccessDesc {
            location: property(device).location,
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        driver!(
            "mapping the GPU's memory",
            cuMemSetAccess(self.place, 2 * self.bytes, &access, 1)
        )
    }
}
