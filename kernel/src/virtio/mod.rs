//! virtio devices: finding them and giving them memory (`device`), their queues (`queue`).

mod device;
mod queue;

pub use device::{Channel, DeviceType, Duplex, find};
pub use queue::{Broken, Progress};
