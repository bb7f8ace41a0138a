//! Starts of kernels.

use super::super::device::{DeviceError, Function, Threads};
use super::{CudaDevice, check};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::ptr;
use torre_compiler::backend::gpu::abi::Argument;

impl CudaDevice {
    /// Starts a kernel in a stream.
    pub(super) fn launch(
        &self,
        stream: sys::CUstream,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        let handle = self.ready(function, threads)?;
        let mut words = words(arguments);
        let mut places = places(&mut words);
        let ([bx, by, bz], [tx, ty, tz]) = (threads.blocks, threads.threads);
        driver!(
            "starting a kernel",
            cuLaunchKernel(
                handle,
                bx,
                by,
                bz,
                tx,
                ty,
                tz,
                threads.shared,
                stream,
                places.as_mut_ptr(),
                ptr::null_mut()
            )
        )
    }

    /// A kernel that may have as much shared memory as its blocks get.
    fn ready(&self, function: Function, threads: Threads) -> Result<sys::CUfunction, DeviceError> {
        let mut state = self.state();
        let Some((handle, allowed)) = state.functions.get_mut(function.0) else {
            return Err(DeviceError::Failed {
                operation: "starting a kernel",
                message: "it was not loaded".to_owned(),
            });
        };
        if threads.shared > *allowed {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            driver!(
                "asking for shared memory",
                cuFuncSetAttribute(*handle, which, threads.shared as i32)
            )?;
            *allowed = threads.shared;
        }
        Ok(*handle)
    }

    /// Bytes of memory that a thread of a kernel has of its own.
    pub(super) fn local_bytes(&self, function: Function) -> Result<u64, DeviceError> {
        let without = Threads {
            blocks: [1; 3],
            threads: [1; 3],
            shared: 0,
        };
        let handle = self.ready(function, without)?;
        let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES;
        let mut bytes = 0;
        driver!(
            "looking at a kernel",
            cuFuncGetAttribute(&mut bytes, which, handle)
        )?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Starts a kernel whose blocks may begin before the work before has ended, which the kernel waits for.
    pub(super) fn launch_early(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        let handle = self.ready(function, threads)?;
        let mut words = words(arguments);
        let mut places = places(&mut words);
        let ([bx, by, bz], [tx, ty, tz]) = (threads.blocks, threads.threads);
        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
        value.programmaticStreamSerializationAllowed = 1;
        let mut early = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value,
        };
        let config = sys::CUlaunchConfig {
            gridDimX: bx,
            gridDimY: by,
            gridDimZ: bz,
            blockDimX: tx,
            blockDimY: ty,
            blockDimZ: tz,
            sharedMemBytes: threads.shared,
            hStream: self.stream,
            attrs: &mut early,
            numAttrs: 1,
        };
        driver!(
            "starting a kernel early",
            cuLaunchKernelEx(&config, handle, places.as_mut_ptr(), ptr::null_mut())
        )
    }

    /// Starts a kernel whose blocks run together, or none of them.
    pub(super) fn launch_together(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        let handle = self.ready(function, threads)?;
        let mut words = words(arguments);
        let mut places = places(&mut words);
        let ([bx, by, bz], [tx, ty, tz]) = (threads.blocks, threads.threads);
        driver!(
            "starting a kernel whose blocks run together",
            cuLaunchCooperativeKernel(
                handle,
                bx,
                by,
                bz,
                tx,
                ty,
                tz,
                threads.shared,
                self.stream,
                places.as_mut_ptr()
            )
        )
    }
}

/// Each parameter in the low bytes of a word; the driver reads as many as the kernel declares.
fn words(arguments: &[Argument]) -> Vec<u64> {
    let word = |argument: &Argument| match *argument {
        Argument::Place(place) => place,
        Argument::Word(word) => u64::from(word as u32),
        Argument::Long(long) => long as u64,
    };
    arguments.iter().map(word).collect()
}

/// Where the parameters lie.
fn places(words: &mut [u64]) -> Vec<*mut c_void> {
    words
        .iter_mut()
        .map(|word| ptr::from_mut(word).cast())
        .collect()
}
