//! virtio devices: finding them and giving them memory (`device`), their queues (`queue`), the ports of a console (`ports`).

mod device;
mod ports;
mod queue;

pub use device::{Channel, DeviceType, Ports, find};
pub use ports::{MOST_PORTS, PortState};
pub use queue::{Broken, Progress};
