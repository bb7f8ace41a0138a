//! NVIDIA GPUs through the CUDA driver, whose library is opened when it is first needed: where there is none,
//! everything else works.

use super::device::{Address, Device, DeviceError, Facts, Function, Mark, Reading, Threads};
use super::l2_partitions::near;
use super::transfer::{Bus, Download, SMALL, Staging};
use answer::check;
use circular::Circle;
use cudarc::driver::sys::{self, CUresult};
use pinned::{Pinned, StreamBus};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use torre_compiler::backend::gpu::abi::Argument;

/// The oldest CUDA whose driver has all functions that are called here.
const OLDEST_CUDA: u32 = 11040;

/// Shared memory that a block can have without being asked for.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

/// Bytes of the messages of the driver's translator, at most.
const LOG_BYTES: usize = 8192;

/// Readings that go on side by side through locked memory: of probes, of slices, and of all values. More are plain
/// copies.
const READINGS: usize = 3;

/// A GPU with a queue of work, and one of copies to the host that go on beside it.
#[derive(Debug)]
pub struct CudaDevice {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    copies: sys::CUstream,
    /// The event for which copies to the host wait.
    ready: sys::CUevent,
    facts: Facts,
    state: Mutex<State>,
    uploads: Mutex<Staging<Pinned>>,
}

/// Objects that were made on the device, to be given back.
#[derive(Debug, Default)]
struct State {
    modules: Vec<sys::CUmodule>,
    /// Functions, with the shared memory that each may have.
    functions: Vec<(sys::CUfunction, u32)>,
    memory: BTreeSet<u64>,
    circles: Vec<Circle>,
    marks: BTreeMap<u64, sys::CUevent>,
    /// Events of marks that were reached, for others.
    spare: Vec<sys::CUevent>,
    /// Stages that no reading uses.
    stages: Vec<Staging<Pinned>>,
    readings: BTreeMap<u64, Copying>,
    /// Streams of queues that were asked for.
    queues: Vec<sys::CUstream>,
    signals: BTreeMap<u64, sys::CUevent>,
    /// Events of signals that were forgotten, for others.
    untimed: Vec<sys::CUevent>,
    /// The number of the next mark or reading.
    next: u64,
}

/// A copy to the host.
#[derive(Debug)]
enum Copying {
    Staged(Staging<Pinned>, Download),
    /// For want of stages it is done when it is waited for.
    Plain(Address),
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

// SAFETY: the driver's handles may be used by any thread once its context is current there, which every method ensures;
// changing data lie behind a mutex.
unsafe impl Send for CudaDevice {}
// SAFETY: as above.
unsafe impl Sync for CudaDevice {}

/// Calls a function of the driver.
macro_rules! driver {
    ($operation:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the library is there (`CudaDevice::count` looked), it has this function (since `OLDEST_CUDA`),
        // pointers are valid for the call, and handles are alive.
        let result = unsafe { sys::$function($($argument),*) };
        check($operation, result)
    }};
}

mod answer;
mod circular;
mod peers;
mod pinned;
mod queues;
mod rates;
mod start;

pub use peers::CudaPeers;

impl CudaDevice {
    /// How many devices the driver finds, and the newest CUDA that it knows.
    pub fn count() -> Result<(usize, u32), DeviceError> {
        // The names that `cudarc` tries begin so.
        torre_trust::check_library_path(&["libcuda.so", "libcuda64", "libnvcuda"])
            .map_err(DeviceError::Refused)?;
        // SAFETY: opening the driver's library runs its initialisers, which are made for that; it lies where the system
        // or the user puts it, and no other user could have put it there.
        if !unsafe { sys::is_culib_present() } {
            return Err(DeviceError::NoDriver);
        }
        // SAFETY: the library is there; every driver has these two functions.
        let started = unsafe { sys::cuInit(0) };
        if started == CUresult::CUDA_ERROR_NO_DEVICE {
            return Err(DeviceError::NoDevice);
        }
        check("starting the CUDA driver", started)?;
        let mut version = 0;
        driver!(
            "asking for the driver's version",
            cuDriverGetVersion(&mut version)
        )?;
        let cuda = version.max(0) as u32;
        if cuda < OLDEST_CUDA {
            return Err(DeviceError::OldDriver {
                cuda,
                needed: OLDEST_CUDA,
            });
        }
        let mut count = 0;
        driver!("counting devices", cuDeviceGetCount(&mut count))?;
        match count {
            ..=0 => Err(DeviceError::NoDevice),
            count => Ok((count as usize, cuda)),
        }
    }

    /// Opens a device by its number.
    pub fn open(number: usize) -> Result<CudaDevice, DeviceError> {
        let (count, cuda) = Self::count()?;
        if number >= count {
            return Err(DeviceError::NoSuchDevice { number, count });
        }
        let mut device = 0;
        driver!("opening a device", cuDeviceGet(&mut device, number as i32))?;
        let facts = facts(device, cuda)?;
        let mut context = ptr::null_mut();
        driver!(
            "opening a device",
            cuDevicePrimaryCtxRetain(&mut context, device)
        )?;
        let mut opened = CudaDevice {
            device,
            context,
            stream: ptr::null_mut(),
            copies: ptr::null_mut(),
            ready: ptr::null_mut(),
            facts,
            state: Mutex::default(),
            uploads: Mutex::new(Staging::new()),
        };
        opened.enter()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        for stream in [&mut opened.stream, &mut opened.copies] {
            driver!("opening a device", cuStreamCreate(stream, flags))?;
        }
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        driver!("opening a device", cuEventCreate(&mut opened.ready, flags))?;
        opened
            .state()
            .stages
            .extend((0..READINGS).map(|_| Staging::new()));
        // Without that, all multiprocessors count as alike.
        opened.facts.l2_partition = near(&opened).unwrap_or_default();
        Ok(opened)
    }

    /// Makes the device the one that this thread's calls mean.
    fn enter(&self) -> Result<(), DeviceError> {
        driver!("choosing a device", cuCtxSetCurrent(self.context))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Lists of handles are whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> Result<(), DeviceError> {
        driver!("waiting for the GPU", cuStreamSynchronize(self.stream))
    }

    /// For copies in the order of the device's work.
    fn in_order(&self) -> StreamBus {
        StreamBus {
            stream: self.stream,
        }
    }

    /// For copies to the host that go on beside that.
    fn beside(&self) -> StreamBus {
        StreamBus {
            stream: self.copies,
        }
    }

    /// Marks the time at which a stream's work up to now is done.
    fn mark_stream(&self, stream: sys::CUstream) -> Result<Mark, DeviceError> {
        let mut state = self.state();
        let event = match state.spare.pop() {
            Some(event) => event,
            None => {
                let mut event = ptr::null_mut();
                let flags = sys::CUevent_flags::CU_EVENT_DEFAULT as u32;
                driver!("marking work", cuEventCreate(&mut event, flags))?;
                event
            }
        };
        let number = state.number();
        state.marks.insert(number, event);
        driver!("marking work", cuEventRecord(event, stream))?;
        Ok(Mark(number))
    }

    /// The event of a mark, which is forgotten, after waiting for it.
    fn reached(&self, mark: Mark) -> Result<Option<sys::CUevent>, DeviceError> {
        self.enter()?;
        let event = self.state().marks.remove(&mark.0);
        if let Some(event) = event {
            let reached = driver!("waiting for the GPU", cuEventSynchronize(event));
            if let Err(error) = reached {
                self.state().spare.push(event);
                return Err(error);
            }
        }
        Ok(event)
    }
}

fn facts(device: sys::CUdevice, cuda: u32) -> Result<Facts, DeviceError> {
    use sys::CUdevice_attribute as A;
    let attribute = |which| {
        let mut value = 0;
        driver!(
            "asking about a device",
            cuDeviceGetAttribute(&mut value, which, device)
        )?;
        Ok::<u32, DeviceError>(value.max(0) as u32)
    };
    let mut name = [0; 256];
    driver!(
        "asking about a device",
        cuDeviceGetName(name.as_mut_ptr(), name.len() as i32 - 1, device)
    )?;
    let mut memory = 0;
    driver!(
        "asking about a device",
        cuDeviceTotalMem_v2(&mut memory, device)
    )?;
    Ok(Facts {
        // SAFETY: the driver ended the text with a zero, and the last byte is one.
        name: unsafe { CStr::from_ptr(name.as_ptr()) }
            .to_string_lossy()
            .into_owned(),
        capability: 10 * attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?
            + attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        cuda,
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        threads: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        // In kHz.
        clock: 1000 * u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?),
        memory: memory as u64,
        l2: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        l2_partition: Vec::new(),
        mapping: circular::granularity(device)?,
    })
}

impl Device for CudaDevice {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn free_memory(&self) -> Result<u64, DeviceError> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        driver!(
            "asking for the GPU's memory",
            cuMemGetInfo_v2(&mut free, &mut total)
        )?;
        Ok(free as u64)
    }

    fn take(&self, bytes: u64) -> Result<Address, DeviceError> {
        let available = self.free_memory()?;
        let short = DeviceError::Memory {
            needed: bytes,
            available,
        };
        if bytes > available {
            return Err(short);
        }
        let mut place = 0;
        let size = bytes.max(1) as usize;
        // SAFETY: as in `driver!`.
        let taken = unsafe { sys::cuMemAlloc_v2(&mut place, size) };
        if taken == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(short);
        }
        check("taking the GPU's memory", taken)?;
        self.state().memory.insert(place);
        driver!(
            "clearing the GPU's memory",
            cuMemsetD8Async(place, 0, size, self.stream)
        )?;
        Ok(Address(place))
    }

    fn take_circular(&self, bytes: u64) -> Result<Address, DeviceError> {
        let available = self.free_memory()?;
        let circle = Circle::take(self.device, bytes, available)?;
        let (place, size) = (circle.place(), bytes as usize);
        self.state().circles.push(circle);
        driver!(
            "clearing the GPU's memory",
            cuMemsetD8Async(place, 0, size, self.stream)
        )?;
        Ok(Address(place))
    }

    fn give_back(&self, memory: Address) -> Result<(), DeviceError> {
        self.enter()?;
        if !self.state().memory.remove(&memory.0) {
            return Ok(());
        }
        self.wait()?;
        driver!("giving back memory", cuMemFree_v2(memory.0))
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        if bytes.len() <= SMALL {
            return self.in_order().send_plain(bytes, to);
        }
        // Every copy through the stages is waited for before they are used again, also after a failure.
        let mut stages = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        stages.upload(&self.in_order(), bytes, to)
    }

    fn read(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        if bytes.len() > SMALL {
            let reading = self.begin_read(from, bytes.len() as u64)?;
            return self.end_read(reading, bytes);
        }
        self.enter()?;
        self.in_order().receive_plain(from, bytes)
    }

    fn begin_read(&self, from: Address, bytes: u64) -> Result<Reading, DeviceError> {
        self.enter()?;
        let mut state = self.state();
        driver!("ordering copies", cuEventRecord(self.ready, self.stream))?;
        driver!(
            "ordering copies",
            cuStreamWaitEvent(self.copies, self.ready, 0)
        )?;
        let copying = match state.stages.pop() {
            Some(mut stages) => match stages.begin(&self.beside(), from, bytes as usize) {
                Ok(download) => Copying::Staged(stages, download),
                Err(error) => {
                    state.stages.push(stages);
                    return Err(error);
                }
            },
            None => Copying::Plain(from),
        };
        let number = state.number();
        state.readings.insert(number, copying);
        Ok(Reading(number))
    }

    fn end_read(&self, reading: Reading, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        let copying = self.state().readings.remove(&reading.0);
        match copying {
            Some(Copying::Staged(mut stages, download)) => {
                let ended = stages.end(&self.beside(), download, bytes);
                self.state().stages.push(stages);
                ended
            }
            Some(Copying::Plain(from)) => self.beside().receive_plain(from, bytes),
            None => Err(DeviceError::Failed {
                operation: "copying from the GPU",
                message: "it did not begin".to_owned(),
            }),
        }
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        self.enter()?;
        driver!(
            "copying in the GPU's memory",
            cuMemcpyDtoDAsync_v2(to.0, from.0, bytes as usize, self.stream)
        )
    }

    fn load(&self, ptx: &str, names: &[String]) -> Result<Vec<Function>, DeviceError> {
        self.enter()?;
        let text = |text: &str| {
            CString::new(text).map_err(|_| DeviceError::Code {
                message: "the text has a zero byte in it".to_owned(),
            })
        };
        let code = text(ptx)?;
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes numbers in place of pointers here.
        let mut values = [
            log.as_mut_ptr().cast::<c_void>(),
            ptr::without_provenance_mut::<c_void>(LOG_BYTES - 1),
        ];
        let mut module = ptr::null_mut();
        let loaded = driver!(
            "loading kernels",
            cuModuleLoadDataEx(
                &mut module,
                code.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr()
            )
        );
        if let Err(error) = loaded {
            let end = log.iter().position(|b| *b == 0).unwrap_or(0);
            let log = String::from_utf8_lossy(&log[..end]).trim().to_owned();
            return Err(DeviceError::Code {
                message: match log.is_empty() {
                    true => error.to_string(),
                    false => log,
                },
            });
        }
        let mut state = self.state();
        state.modules.push(module);
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let name = text(name)?;
            let mut function = ptr::null_mut();
            driver!(
                "finding a kernel",
                cuModuleGetFunction(&mut function, module, name.as_ptr())
            )?;
            found.push(Function(state.functions.len()));
            state.functions.push((function, SHARED_WITHOUT_ASKING));
        }
        Ok(found)
    }

    fn spilled(&self, function: Function) -> Result<u64, DeviceError> {
        self.enter()?;
        self.local_bytes(function)
    }

    unsafe fn start(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.launch(self.stream, function, threads, arguments)
    }

    unsafe fn start_early(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.launch_early(function, threads, arguments)
    }

    unsafe fn start_together(
        &self,
        function: Function,
        threads: Threads,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        self.enter()?;
        self.launch_together(function, threads, arguments)
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        self.enter()?;
        self.mark_stream(self.stream)
    }

    fn reach(&self, mark: Mark) -> Result<(), DeviceError> {
        let event = self.reached(mark)?;
        self.state().spare.extend(event);
        Ok(())
    }

    fn between(&self, from: Mark, to: Mark) -> Result<Duration, DeviceError> {
        let marks = [self.reached(from), self.reached(to)];
        let mut time = 0.0;
        let measured = match marks {
            [Ok(Some(from)), Ok(Some(to))] => {
                driver!("measuring time", cuEventElapsedTime(&mut time, from, to))
            }
            _ => Ok(()),
        };
        // Also after a failure.
        let events = marks.iter().flatten().flatten();
        self.state().spare.extend(events.copied());
        let [from, to] = marks;
        from.and(to)?;
        measured?;
        Ok(Duration::from_secs_f32((time * 1e-3).max(0.0)))
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // A failure here cannot be reported, and the process keeps nothing of the device.
        if self.enter().is_err() {
            return;
        }
        let state = std::mem::take(&mut *self.state());
        let mut streams = state.queues.clone();
        streams.extend([self.stream, self.copies]);
        for stream in streams.iter().filter(|stream| !stream.is_null()) {
            let _ = driver!("giving back", cuStreamSynchronize(*stream));
        }
        let uploads = std::mem::replace(
            self.uploads
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
            Staging::new(),
        );
        let reading = |copying| match copying {
            Copying::Staged(stages, _) => Some(stages),
            Copying::Plain(_) => None,
        };
        let readings = state.readings.into_values().filter_map(reading);
        let stages = state.stages.into_iter().chain(readings).chain([uploads]);
        for memory in stages.flat_map(Staging::into_memory) {
            memory.give_back();
        }
        if !self.ready.is_null() {
            let _ = driver!("giving back", cuEventDestroy_v2(self.ready));
        }
        let events = state.marks.into_values().chain(state.spare);
        let events = events.chain(state.signals.into_values());
        for event in events.chain(state.untimed) {
            let _ = driver!("giving back", cuEventDestroy_v2(event));
        }
        for place in state.memory {
            let _ = driver!("giving back", cuMemFree_v2(place));
        }
        for circle in state.circles {
            circle.give_back();
        }
        for module in state.modules {
            let _ = driver!("giving back", cuModuleUnload(module));
        }
        for stream in streams.into_iter().filter(|stream| !stream.is_null()) {
            let _ = driver!("giving back", cuStreamDestroy_v2(stream));
        }
        let _ = driver!("giving back", cuDevicePrimaryCtxRelease_v2(self.device));
    }
}
