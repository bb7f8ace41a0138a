//! Memory that is mapped twice in a row.

use super::{Address, CudaDevice, DeviceError, check, sys};
use std::ptr;
use sys::CUresult;

/// Memory of a circular buffer, where it lies, and how much of it there is.
#[derive(Debug)]
pub(super) struct Circle {
    handle: sys::CUmemGenericAllocationHandle,
    place: u64,
    bytes: usize,
    /// How often it is mapped up to now.
    mapped: usize,
}

/// What memory of a device is like.
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
    /// Gives it back; what fails here cannot be helped.
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

impl CudaDevice {
    /// Takes memory that is mapped twice in a row, filled with zeros; so many bytes are free.
    pub(super) fn circle(&self, bytes: u64, available: u64) -> Result<Address, DeviceError> {
        let short = DeviceError::Memory {
            needed: bytes,
            available,
        };
        if bytes > available {
            return Err(short);
        }
        let size = bytes as usize;
        let mut handle = 0;
        // SAFETY: as in `driver!`.
        let taken = unsafe { sys::cuMemCreate(&mut handle, size, &property(self.device), 0) };
        if taken == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(short);
        }
        check("taking the GPU's memory", taken)?;
        let mut circle = Circle {
            handle,
            place: 0,
            bytes: size,
            mapped: 0,
        };
        let mapped = circle.map(self.device);
        let place = circle.place;
        let cleared = mapped.and_then(|()| {
            driver!(
                "clearing the GPU's memory",
                cuMemsetD8Async(place, 0, size, self.stream)
            )
        });
        match cleared {
            Ok(()) => self.state().circles.push(circle),
            Err(error) => {
                circle.give_back();
                return Err(error);
            }
        }
        Ok(Address(place))
    }
}
