//! How a process that is not our child ended: Linux 6.15 and later tell through its pidfd.
#![allow(unsafe_code)]

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::ffi::c_void;
use std::os::fd::AsFd;

/// `struct pidfd_info` in its first version.
#[repr(C)]
#[derive(Default)]
struct Information {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// Asked for, and given back where it is known: the exit status.
const EXIT: u64 = 1 << 3;

struct GetInformation(Information);

// SAFETY: opcode and layout are those of PIDFD_GET_INFO; the size in the opcode is that of the
// structure, and the kernel writes no more than that.
unsafe impl Ioctl for GetInformation {
    type Output = Information;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Information>(0xff, 11)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, at: *mut c_void) -> rustix::io::Result<Information> {
        // SAFETY: `as_ptr` gave this pointer.
        Ok(unsafe { at.cast::<Information>().read() })
    }
}

/// The status of the ended process behind `fd`, as `wait` codes it; `None` on kernels that do not
/// tell.
pub(crate) fn exit_status(fd: impl AsFd) -> Option<i32> {
    let ask = GetInformation(Information {
        mask: EXIT,
        ..Information::default()
    });
    // SAFETY: see the implementation above.
    let told = unsafe { ioctl(fd, ask) }.ok()?;
    (told.mask & EXIT != 0).then_some(told.exit_code)
}
