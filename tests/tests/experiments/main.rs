//! What is measured beside Linux is held to: the published experiments at a small scale, and the goals of the comparison that the project
//! exists for.

mod mission;
mod rungs;
