//! Build, boot, test and measure Alea.

fn main() {}
