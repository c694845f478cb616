//! What is done once a terminal's lock is free: output is sent, who waits is woken, signals go out.

use super::events::Events;
use super::job;
use super::tty::Tty;
use crate::vfs::PollEvents;

impl Tty {
    /// Sends, wakes and signals.
    pub(super) fn act(&self, events: Events, group: i32) {
        if events.output {
            match self.device {
                Some(device) => device.send(),
                None => {
                    self.for_output.wake_events((PollEvents::READABLE | PollEvents::PRI).bits());
                }
            }
        }
        if events.readable {
            self.for_input.wake_events(PollEvents::READABLE.bits());
        }
        if group != 0
            && let Some(control) = job::control()
        {
            for signal in events.signals {
                control.signal_group(group, signal);
            }
        }
    }
}
