//! Which files may be relied on: objects whose code is run, libraries that are opened, measurements that are believed.
//!
//! A place is relied on if only the user and the system can change its contents:
//!
//! 1. Every folder from the root down belongs to the user or to the system. No other user may write to it, except
//!    where it is sticky as `/tmp` is: there, others cannot rename or remove files of the user, and the next folder
//!    on the path must be the user's or the system's too.
//! 2. A symbolic link on the way to the user's cache folder is followed if the user or the system made it. Torre's own
//!    folders and files below are never reached through one.
//! 3. Torre's own folders belong to the user and have mode 0700. A file in them belongs to the user, is regular, has
//!    one name, and no other user may write it.
//! 4. A library and the folders above it belong to the user, to the system, or to the owner of the running
//!    executable. Where the user names a library, its owner is trusted by that, any user.
//!
//! Folders are opened one below the other, each relative to the descriptor of the one above it, and everything is
//! checked on the open descriptor; later uses go through it too. So a folder that is replaced between two steps is
//! checked like any other, and one that is replaced afterwards is not used.
//!
//! "May write" means the mode of a file. POSIX access control lists show in the mode: their mask stands in the place
//! of the group's permissions. A group that consists of the user alone counts as the user. Rights that no mode shows
//! (lists of NFS version 4, other machines that mount the same disk) are not seen.

mod folder;
mod library;
mod refusal;
mod user;
mod walk;

pub use folder::{Entry, Folder, Lock};
pub use library::{Named, check_library, check_library_path};
pub use refusal::{Fault, Refusal};
