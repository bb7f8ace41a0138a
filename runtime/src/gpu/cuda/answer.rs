//! Answers of the driver, as results.

use crate::gpu::device::DeviceError;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::CStr;
use std::ptr;

/// A driver's answer as a result.
pub(super) fn check(operation: &'static str, result: CUresult) -> Result<(), DeviceError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = ptr::null();
    // SAFETY: the driver points to a text that lives for ever, or leaves null.
    let known = unsafe { sys::cuGetErrorString(result, &mut text) } == CUresult::CUDA_SUCCESS;
    let message = match known && !text.is_null() {
        // SAFETY: as above.
        true => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
        false => format!("error {}", result as u32),
    };
    Err(DeviceError::Failed { operation, message })
}
