//! Draws: none repeats, whoever draws by whatever way, on whatever copy of a machine.

use std::sync::atomic::Ordering;

use alea_random::block::{BLOCK_LEN, BlockGenerator, Key, Portable};
use alea_random::crng::{NotSeeded, Stream};
use alea_random::reseed::Cause;
use alea_random::service::{Event, Platform, Service};

use crate::platform::{Mine, drawn, ready, unseeded};

#[test]
fn all_ways_to_draw_differ_and_none_repeats() {
    let service = ready(b"a");
    let mut seen = std::collections::HashSet::new();
    let mut put = |bytes: &[u8]| assert!(seen.insert(bytes[..16].to_vec()), "bytes came twice");
    put(&drawn(&service));
    let mut words = [[0; 8]; 4];
    service.fill_words(&mut words).unwrap();
    put(words.as_flattened());
    put(service.ready::<2>().unwrap().map(u64::to_le_bytes).as_flattened());
    let mut apart = [0; 16];
    service.fill_apart(&mut apart).unwrap();
    put(&apart);
    let mut stream = Stream::vacant();
    service.start_stream(&mut stream).unwrap();
    let mut blocks = [[0; BLOCK_LEN]; 2];
    service.fill_from(&mut stream, &mut blocks).unwrap();
    blocks.iter().for_each(|block| put(block));
    let make = |key: &Key, counter, run: std::ops::Range<usize>| {
        let mut block = [[0; BLOCK_LEN]];
        Portable.fill(key, counter, &mut block);
        assert_eq!(run, 0..1);
        put(&block[0]);
        true
    };
    assert_eq!(service.make_from(&mut stream, 1, make), Ok(true));
    assert_eq!(service.make_from(&mut stream, 1, |_, _, _| false), Ok(false));
}

#[test]
fn a_batch_is_topped_up_where_it_ends() {
    let service = ready(b"a");
    drawn(&service);
    assert!(!service.top_up::<2>(), "there is enough");
    let mut draws = 0;
    while service.ready::<2>().is_some() {
        draws += 1;
        assert!(draws < 100);
    }
    assert_eq!(draws, (480 - 32) / 16);
    assert!(service.top_up::<2>());
    assert!(service.ready::<2>().is_some());
    let groups = service.platform().groups.lock().unwrap().clone();
    assert_eq!(groups.iter().filter(|&&blocks| blocks == 8).count(), 2, "by the platform's code");
}

/// A handler that interrupts a draw has no key of its CPU; it gets one of its own.
#[test]
fn a_handler_draws_apart() {
    let service = ready(b"a");
    let outside = drawn(&service);
    service.platform().groups.lock().unwrap().clear();
    service.platform().in_handler.store(true, Ordering::Relaxed);
    let inside = drawn(&service);
    let mut words = [[0; 8]; 4];
    service.fill_words(&mut words).unwrap();
    assert!(outside != inside && words.as_flattened() != inside);
    assert_eq!(*service.platform().groups.lock().unwrap(), [], "no vector code in a handler");
    assert_eq!(service.start_stream(&mut Stream::vacant()), Err(NotSeeded));
    assert_eq!(service.ready::<2>(), None);
    assert!(!service.top_up::<2>());
}

type Draw = fn(&Service<Mine>) -> [u8; 16];

/// All ways to draw but `ready`, which gives nothing on a copy.
const WAYS: [Draw; 5] = [
    |service| *drawn(service).first_chunk().unwrap(),
    |service| {
        let mut words = [[0; 8]; 2];
        service.fill_words(&mut words).unwrap();
        *words.as_flattened().first_chunk().unwrap()
    },
    |service| {
        let mut bytes = [0; 16];
        service.fill_apart(&mut bytes).unwrap();
        bytes
    },
    |service| *unseeded(service).first_chunk().unwrap(),
    |service| {
        let (mut stream, mut block) = (Stream::vacant(), [[0; BLOCK_LEN]]);
        service.start_stream(&mut stream).unwrap();
        service.fill_from(&mut stream, &mut block).unwrap();
        *block[0].first_chunk().unwrap()
    },
];

/// A machine that is copied twice while one draw is under way, before any two readings of its id: copies of the copy have
/// nothing in common, if there was a reading that could tell.
#[test]
fn copies_made_twice_during_one_draw_draw_other_bytes() {
    const READINGS: usize = 10;
    let pairs =
        (0..READINGS).flat_map(|first| (first..READINGS).map(move |second| (first, second)));
    for (way, draw) in WAYS.iter().enumerate() {
        let mut told_apart = 0;
        for (first, second) in pairs.clone() {
            let twin = |id| {
                let service = ready(b"a");
                drawn(&service);
                *service.platform().readings.lock().unwrap() = 0;
                *service.platform().changes.lock().unwrap() = vec![(first, 100), (second, id)];
                (draw(&service), *service.platform().readings.lock().unwrap())
            };
            let (one, readings) = twin(1);
            let (other, _) = twin(2);
            let both_came = readings > second;
            assert_eq!(one != other, both_came, "way {way}, before readings {first} and {second}");
            told_apart += usize::from(both_came);
        }
        // The first change is seen by the first reading; the second before any of the five, or more, that follow from it.
        assert!(told_apart >= 5, "way {way}: {told_apart}");
    }
}

/// Twins: one machine that is saved and restored twice. What they draw by any way is not the same.
#[test]
fn copies_of_a_machine_draw_other_bytes() {
    let nothing_ready: Draw = |service| {
        assert_eq!(service.ready::<2>(), None, "made for another machine");
        *drawn(service).first_chunk().unwrap()
    };
    for draw in WAYS.into_iter().chain([nothing_ready]) {
        let twin = |id| {
            let service = ready(b"a");
            drawn(&service);
            *service.platform().id.lock().unwrap() = id;
            let bytes = draw(&service);
            let told = service.platform().take_told();
            let id = Event::Identified(16);
            assert_eq!(told, [Event::Copied, Event::Reseeded(Cause::Clone), id]);
            assert_eq!(
                service.platform().shown.lock().unwrap().last().unwrap().1,
                drawn_for(&service)
            );
            bytes
        };
        assert_ne!(twin(1), twin(2));
    }
}

fn drawn_for(service: &Service<Mine>) -> u64 {
    service.platform().id().0[0]
}

#[test]
fn who_is_told_of_a_copy_need_not_wait_for_a_draw() {
    let service = ready(b"a");
    service.on_copy();
    assert_eq!(service.platform().take_told(), [], "it is none");
    *service.platform().id.lock().unwrap() = 5;
    service.on_copy();
    assert_eq!(service.platform().take_told().len(), 3);
    assert_eq!(service.platform().shown.lock().unwrap().last(), Some(&(2, 5)));
    let before = service.generation();
    drawn(&service);
    assert_eq!(service.generation(), before, "the draw found nothing new");
    let shown = std::mem::take(&mut *service.platform().shown.lock().unwrap());
    assert_eq!(shown.last(), Some(&(2, 5)));
    service.show();
    assert_eq!(*service.platform().shown.lock().unwrap(), [(2, 5)], "once more, when asked");
}
