//! What is done once a terminal's lock is free: output is sent, who waits is woken, signals go out.

use super::events::Events;
use super::job;
use super::tty::Tty;
use crate::sync::Pace;
use crate::vfs::PollEvents;
use crate::vfs::notify::Reason;
use crate::vfs::object::owner::PidRef;

impl Tty {
    /// Sends, wakes and signals.
    pub(super) fn act(&self, events: Events, group: Option<PidRef>) {
        if events.output {
            match self.device {
                Some(device) => device.send(),
                None => {
                    self.for_output.wake_events((PollEvents::READABLE | PollEvents::PRI).bits());
                }
            }
            if events.has_put {
                self.masters.tell(Reason::In);
            }
        }
        if events.readable {
            self.for_input.wake_events(PollEvents::READABLE.bits());
        }
        for _ in (0..events.arrived).paced() {
            self.listeners.tell(Reason::In);
        }
        if let Some(group) = group
            && let Some(control) = job::control()
        {
            for signal in events.signals {
                control.signal_group(group, signal);
            }
        }
    }
}
