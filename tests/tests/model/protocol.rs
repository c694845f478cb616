//! The protocol of `alea_random::crng::twins` in steps between which anything may happen.
//!
//! A key is what it depends on: the set of machines' ids that were hashed into it. A twin computes a word as well if the
//! key that made it depends on no id of this machine's own. A step is what no other CPU can see the inside of: one load or
//! store of shared memory, or what is done under a lock.

use stateright::{Model, Property};

/// The name of the property that no step breaks a promise.
pub const NO_FAULT: &str = "no promise is broken";

/// The rules that are parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// A new base key is made of the old one and the seed; otherwise the seed replaces it.
    pub absorb: bool,
    /// The id is read before the seed is extracted and again afterwards; otherwise the seed depends on the id that was
    /// learnt last.
    pub look_again: bool,
    pub compare: Compare,
    /// Programs are shown a new generation before the id that it was made for.
    pub generation_first: bool,
}

/// With what the machine's id is compared after a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// With what the key was made for that made the bytes.
    OwnKey,
    /// With what this CPU has seen.
    Seen,
    /// With what some CPU has learnt.
    Known,
}

/// What a CPU has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// A draw from the CPU's key.
    Draw,
    Reseed,
    /// A program's draw, from its own state.
    Vdso,
}

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Bytes were used that a twin draws as well.
    SharedWord,
    /// A draw that began after a reseed had returned came from a key before it.
    OldKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Step(usize),
    /// The hypervisor restores the machine as another one.
    Clone,
}

pub struct Protocol {
    pub order: Order,
    pub programs: [&'static [Job]; 3],
    /// How often the machine may be cloned.
    pub clones: u8,
}

/// A set of ids.
type Ids = u8;

const fn only(id: u8) -> Ids {
    1 << id
}

/// A key by what it depends on, and what it says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    ids: Ids,
    made_for: u8,
    generation: u8,
}

/// Where a CPU is. What comes next is what the name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    NextJob,
    LoadGeneration,
    TakeKey,
    CompareId,
    LookAtBase,
    IsItStillNew { made_for: u8 },
    // Before today's order: the id is mixed in, and known once there is a key.
    MixId { id: u8 },
    SetKnown { id: u8 },
    ReadId,
    Extract { id: u8 },
    ReadIdAgain { id: u8, ids: Ids },
    Install { id: u8, ids: Ids },
    ShowFirst,
    ShowSecond,
    ShowThird,
    // A program's draw.
    LoadShown,
    CompareLow,
    CompareHigh,
    LoadShownAgain { compared: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cpu {
    at: At,
    left: usize,
    key: Key,
    seen: u8,
    /// The generation of the last reseed that had returned when the draw began.
    floor: u8,
    /// Whether the draw is a program's, and how often it was thrown away.
    tries: Option<u8>,
    /// The program's state: its generation, and what its key depends on; and the generation that the draw began with.
    state: (u8, Ids),
    began: u8,
    reseeding: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    id: u8,
    clones_left: u8,
    pool: Ids,
    base: Key,
    /// Who holds the base's lock.
    lock: Option<usize>,
    /// What was learnt last, before today's order.
    known: u8,
    /// What programs see: the generation, and both halves of the id.
    shown: (u8, u8, u8),
    reseeded: u8,
    cpus: [Cpu; 3],
    /// A word was used after the machine had been cloned; bytes were thrown away.
    used_as_twin: bool,
    thrown_away: bool,
    pub fault: Option<Fault>,
}

impl Machine {
    /// A machine that has a first key, which no CPU has taken a key from.
    pub fn new(programs: &[&'static [Job]; 3], clones_left: u8) -> Self {
        let cpu = |program: &&[Job]| Cpu {
            at: At::NextJob,
            left: program.len(),
            key: Key { ids: 0, made_for: 0, generation: 0 },
            seen: 0,
            floor: 0,
            tries: None,
            state: (0, 0),
            began: 0,
            reseeding: false,
        };
        Self {
            id: 0,
            clones_left,
            pool: only(0),
            base: Key { ids: only(0), made_for: 0, generation: 1 },
            lock: None,
            known: 0,
            shown: (1, 0, 0),
            reseeded: 1,
            cpus: [cpu(&programs[0]), cpu(&programs[1]), cpu(&programs[2])],
            used_as_twin: false,
            thrown_away: false,
            fault: None,
        }
    }

    fn over(&self) -> bool {
        self.cpus.iter().all(|cpu| cpu.at == At::NextJob && cpu.left == 0)
    }

    /// Whether the CPU has something to do and does not wait for the lock.
    fn can_step(&self, n: usize) -> bool {
        let cpu = &self.cpus[n];
        let wants_lock = matches!(cpu.at, At::TakeKey | At::LookAtBase | At::Install { .. });
        let waits = wants_lock && self.lock.is_some();
        let has_ended = cpu.at == At::NextJob && cpu.left == 0;
        !waits && !has_ended
    }

    /// Bytes of a key that depends on `ids` are used, which were compared with the machine `compared`.
    fn use_bytes(&mut self, ids: Ids, compared: u8, is_old: bool) {
        if ids & only(compared) == 0 {
            self.fault = Some(Fault::SharedWord);
        } else if is_old {
            self.fault = Some(Fault::OldKey);
        }
        self.used_as_twin |= compared > 0;
    }

    fn step(&mut self, n: usize, order: Order, program: &[Job]) {
        let at = match self.cpus[n].at {
            // No step of its own: nothing is shared that it looks at.
            At::NextJob => self.next_job(n, program),
            at => at,
        };
        let next = match at {
            At::LoadGeneration | At::TakeKey | At::CompareId => self.draw(n, at, order),
            At::LookAtBase | At::IsItStillNew { .. } | At::MixId { .. } | At::SetKnown { .. } => {
                self.learn(n, at, order)
            }
            At::ReadId | At::Extract { .. } | At::ReadIdAgain { .. } | At::Install { .. } => {
                self.reseed(n, at, order)
            }
            At::ShowFirst | At::ShowSecond | At::ShowThird => self.show(n, at, order),
            _ => self.vdso(n, at),
        };
        self.cpus[n].at = next;
    }

    fn next_job(&mut self, n: usize, program: &[Job]) -> At {
        let cpu = &mut self.cpus[n];
        let job = program[program.len() - cpu.left];
        cpu.left -= 1;
        (cpu.floor, cpu.tries, cpu.reseeding) = (self.reseeded, None, false);
        match job {
            Job::Draw => At::LoadGeneration,
            Job::Reseed => {
                cpu.reseeding = true;
                At::ReadId
            }
            Job::Vdso => {
                cpu.tries = Some(0);
                At::LoadShown
            }
        }
    }

    fn draw(&mut self, n: usize, at: At, order: Order) -> At {
        let (id, known, base) = (self.id, self.known, self.base);
        let cpu = &mut self.cpus[n];
        match at {
            At::LoadGeneration if cpu.key.generation == base.generation => At::CompareId,
            At::LoadGeneration => At::TakeKey,
            At::TakeKey => {
                cpu.key = base;
                At::CompareId
            }
            _ => {
                let with = match order.compare {
                    Compare::OwnKey => cpu.key.made_for,
                    Compare::Seen => cpu.seen,
                    Compare::Known => known,
                };
                if with != id {
                    self.thrown_away = true;
                    return At::LookAtBase;
                }
                let (key, floor) = (cpu.key, cpu.floor);
                match cpu.tries {
                    Some(0 | 1) => {
                        cpu.state.1 = key.ids;
                        At::CompareLow
                    }
                    // The third time a program's draw is a system call.
                    Some(_) | None => {
                        self.use_bytes(key.ids, id, key.generation < floor);
                        At::NextJob
                    }
                }
            }
        }
    }

    /// The machine is another one than the bytes were made for.
    fn learn(&mut self, n: usize, at: At, order: Order) -> At {
        let old = order.compare == Compare::Seen;
        match at {
            At::LookAtBase if old || order.compare == Compare::Known => {
                if self.known == self.id {
                    self.cpus[n].seen = self.id;
                    return At::LoadGeneration;
                }
                At::MixId { id: self.id }
            }
            At::LookAtBase => At::IsItStillNew { made_for: self.base.made_for },
            At::IsItStillNew { made_for } if made_for == self.id => At::LoadGeneration,
            At::MixId { id } => {
                self.pool |= only(id);
                At::ReadId
            }
            At::SetKnown { id } => {
                self.known = id;
                self.cpus[n].seen = id;
                At::LoadGeneration
            }
            _ => At::ReadId,
        }
    }

    fn reseed(&mut self, n: usize, at: At, order: Order) -> At {
        match at {
            At::ReadId if order.look_again => At::Extract { id: self.id },
            At::ReadId => At::Extract { id: self.known },
            At::Extract { id } => {
                if order.look_again {
                    self.pool |= only(id);
                    At::ReadIdAgain { id, ids: self.pool }
                } else {
                    At::Install { id, ids: self.pool }
                }
            }
            At::ReadIdAgain { id, ids } if id == self.id => At::Install { id, ids },
            At::Install { id, ids } => {
                self.lock = Some(n);
                self.base.ids = if order.absorb { self.base.ids | ids } else { ids };
                (self.base.made_for, self.base.generation) = (id, self.base.generation + 1);
                At::ShowFirst
            }
            _ => At::ReadId,
        }
    }

    /// Still under the lock.
    fn show(&mut self, n: usize, at: At, order: Order) -> At {
        let Key { made_for, generation, .. } = self.base;
        let (first, second, third) = if order.generation_first { (0, 1, 2) } else { (2, 0, 1) };
        let part = match at {
            At::ShowFirst => first,
            At::ShowSecond => second,
            _ => third,
        };
        match part {
            0 => self.shown.0 = self.shown.0.max(generation),
            1 => self.shown.1 = made_for,
            _ => self.shown.2 = made_for,
        }
        match at {
            At::ShowFirst => At::ShowSecond,
            At::ShowSecond => At::ShowThird,
            _ => self.installed(n, generation, order),
        }
    }

    fn installed(&mut self, n: usize, generation: u8, order: Order) -> At {
        self.lock = None;
        let cpu = &self.cpus[n];
        if cpu.reseeding {
            self.reseeded = self.reseeded.max(generation);
            return At::NextJob;
        }
        match order.compare {
            Compare::OwnKey => At::LoadGeneration,
            Compare::Seen | Compare::Known => At::SetKnown { id: self.id },
        }
    }

    fn vdso(&mut self, n: usize, at: At) -> At {
        let (id, shown) = (self.id, self.shown);
        let cpu = &mut self.cpus[n];
        match at {
            At::LoadShown => {
                cpu.began = shown.0;
                if cpu.state.0 == shown.0 {
                    return At::CompareLow;
                }
                cpu.state.0 = shown.0;
                At::LoadGeneration
            }
            At::CompareLow if shown.1 == id => At::CompareHigh,
            At::CompareHigh if shown.2 == id => At::LoadShownAgain { compared: id },
            At::LoadShownAgain { compared } if shown.0 == cpu.began => {
                let (ids, is_old) = (cpu.state.1, cpu.state.0 < cpu.floor);
                self.use_bytes(ids, compared, is_old);
                At::NextJob
            }
            _ => {
                self.thrown_away = true;
                let cpu = &mut self.cpus[n];
                let tries = cpu.tries.map_or(2, |tries| tries + 1);
                cpu.tries = Some(tries);
                if tries < 2 { At::LoadShown } else { At::LoadGeneration }
            }
        }
    }
}

impl Model for Protocol {
    type State = Machine;
    type Action = Action;

    fn init_states(&self) -> Vec<Machine> {
        vec![Machine::new(&self.programs, self.clones)]
    }

    fn actions(&self, machine: &Machine, actions: &mut Vec<Action>) {
        if machine.fault.is_some() {
            return;
        }
        actions.extend((0..3).filter(|&n| machine.can_step(n)).map(Action::Step));
        // After the last draw nobody can tell a clone.
        if machine.clones_left > 0 && !machine.over() {
            actions.push(Action::Clone);
        }
    }

    fn next_state(&self, machine: &Machine, action: Action) -> Option<Machine> {
        let mut next = machine.clone();
        match action {
            Action::Step(n) => next.step(n, self.order, self.programs[n]),
            Action::Clone => (next.id, next.clones_left) = (next.id + 1, next.clones_left - 1),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_FAULT, |_, machine: &Machine| machine.fault.is_none()),
            Property::always("programs are shown what the base is", |_, machine: &Machine| {
                let Key { made_for, generation, .. } = machine.base;
                machine.lock.is_some() || machine.shown == (generation, made_for, made_for)
            }),
            Property::eventually("all programs end", |_, machine: &Machine| machine.over()),
            Property::sometimes("bytes are used after a clone", |_, m: &Machine| m.used_as_twin),
            Property::sometimes("bytes are thrown away", |_, m: &Machine| m.thrown_away),
        ]
    }
}
