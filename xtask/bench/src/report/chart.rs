//! Rows of bars, stacks and dots, drawn with plotters into SVG.
//!
//! Colours are stand-ins that the page's style sheet replaces, so that one drawing serves dark and light.
//! Every chart is drawn twice, for a desktop and for a phone: scaled-down text cannot be read.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::{PhasePart, Row, Spread};
use xtask_host::table;

pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
pub(super) const FAINT: RGBColor = RGBColor(1, 2, 4);
pub(super) const LINUX: RGBColor = RGBColor(1, 2, 5);
pub(super) const ALEA: RGBColor = RGBColor(1, 2, 6);
pub(super) const GOAL: RGBColor = RGBColor(1, 2, 7);

/// The colour of the `n`th phase, replaced as the others.
fn phase_colour(n: usize) -> RGBColor {
    RGBColor(1, 3, (n % PHASE_COLOURS) as u8)
}
pub(super) const PHASE_COLOURS: usize = 12;

/// Widths in CSS pixels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Wide,
    Narrow,
}

impl Size {
    pub(super) fn width(self) -> i32 {
        match self {
            Self::Wide => 940,
            Self::Narrow => 350,
        }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws on an area of `width` by `height`; the SVG scales with its column.
pub(super) fn draw(
    size: Size,
    height: i32,
    title: &str,
    paint: impl FnOnce(&Area<'_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (size.width() as u32, height as u32))
            .into_drawing_area();
        paint(&area)?;
        area.present().map_err(failed)?;
    }
    let start = svg.find("<svg").unwrap_or(0);
    let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(title));
    Ok(svg[start..].replacen("<svg ", &label, 1))
}

pub(super) fn failed<E: std::fmt::Debug>(error: E) -> anyhow::Error {
    anyhow!("cannot draw: {error:?}")
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

pub(super) fn text(area: &Area<'_>, at: (i32, i32), words: &str, colour: RGBColor) -> Result<()> {
    let style = ("sans-serif", 16).into_font().color(&colour);
    area.draw(&Text::new(words.to_owned(), at, style)).map_err(failed)
}

fn fill(area: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<()> {
    area.draw(&Rectangle::new([from, to], colour.filled())).map_err(failed)
}

fn line(area: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<()> {
    area.draw(&PathElement::new(vec![from, to], colour.stroke_width(2))).map_err(failed)
}

/// Where a chart's rows stand: beside their labels when there is room, else below them.
struct Layout {
    left: i32,
    right: i32,
    height: i32,
    drop: i32,
}

impl Layout {
    fn of(size: Size, room_for_values: i32) -> Self {
        let right = size.width() - room_for_values;
        match size {
            Size::Wide => Self { left: 190, right, height: 24, drop: 0 },
            Size::Narrow => Self { left: 4, right, height: 40, drop: 16 },
        }
    }

    /// The top of row `n`'s bar.
    fn y(&self, n: usize) -> i32 {
        4 + n as i32 * self.height + self.drop
    }

    fn label(&self, n: usize) -> (i32, i32) {
        (4, 5 + n as i32 * self.height)
    }

    fn x(&self, share: f64) -> i32 {
        self.left + (share.clamp(0.0, 1.0) * f64::from(self.right - self.left)) as i32
    }
}

/// One bar per benchmark: Alea's share of Linux, with a mark where the goal is.
pub(super) fn ratios(size: Size, title: &str, rows: &[&Row]) -> Result<String> {
    let layout = Layout::of(size, 64);
    let height = 8 + rows.len() as i32 * layout.height;
    draw(size, height, title, |area| {
        for (n, row) in rows.iter().enumerate() {
            let ratio = row.ratio().unwrap_or(0.0);
            let y = layout.y(n);
            text(area, layout.label(n), &row.name, INK)?;
            fill(area, (layout.left, y), (layout.right, y + 14), FAINT)?;
            let colour = if ratio > 1.0 { GOAL } else { ALEA };
            fill(area, (layout.left, y), (layout.x(ratio), y + 14), colour)?;
            if let Some(goal) = row.goal {
                let colour = if ratio > 1.0 { INK } else { GOAL };
                line(area, (layout.x(goal), y - 2), (layout.x(goal), y + 16), colour)?;
            }
            text(area, (layout.right + 8, y + 1), &format!("{ratio:.3}"), INK)?;
        }
        Ok(())
    })
}

/// A row of a stacked chart: its label, its parts, and what is written behind it.
pub(super) struct Stack {
    pub label: String,
    /// `(colour, size)`
    pub parts: Vec<(RGBColor, f64)>,
    pub value: String,
}

/// The parts of a phase stack, in the order and colours of the legend.
pub(super) fn phase_parts(phases: &[PhasePart], total: f64) -> Vec<(RGBColor, f64)> {
    let mut parts: Vec<_> =
        phases.iter().enumerate().map(|(n, phase)| (phase_colour(n), phase.avg)).collect();
    let known: f64 = phases.iter().map(|phase| phase.avg).sum();
    parts.push((phase_colour(PHASE_COLOURS - 1), (total - known).max(0.0)));
    parts
}

/// Stacked bars on one scale.
pub(super) fn stacks(size: Size, title: &str, rows: &[Stack]) -> Result<String> {
    let layout = Layout::of(size, 84);
    let sum = |row: &Stack| row.parts.iter().map(|(_, part)| part).sum::<f64>();
    let most = rows.iter().map(sum).fold(1.0, f64::max);
    draw(size, 8 + rows.len() as i32 * (layout.height + 8), title, |area| {
        for (n, row) in rows.iter().enumerate() {
            let y = layout.y(n) + n as i32 * 8;
            text(area, (4, layout.label(n).1 + n as i32 * 8), &row.label, INK)?;
            let mut at = 0.0;
            for (colour, part) in &row.parts {
                let from = layout.x(at / most);
                at += part;
                fill(area, (from, y), (layout.x(at / most).max(from + 1), y + 18), *colour)?;
            }
            text(area, (layout.right + 8, y + 3), &row.value, INK)?;
        }
        Ok(())
    })
}

/// One mark for each sample of both kernels, on a logarithmic axis.
pub(super) fn spreads(size: Size, title: &str, rows: &[&Row]) -> Result<String> {
    let lines = |row: &Row| {
        [(row.linux.clone(), LINUX), (row.alea.clone(), ALEA)]
            .into_iter()
            .filter_map(|(spread, colour)| spread.map(|Spread { samples, .. }| (samples, colour)))
            .collect::<Vec<_>>()
    };
    let rows: Vec<_> = rows.iter().map(|row| (row.name.as_str(), lines(row))).collect();
    dots(size, title, &rows, table::time)
}

/// A row of dots: its label, and `(values, colour)`.
pub(super) type Dots<'a> = (&'a str, Vec<(Vec<f64>, RGBColor)>);

/// Dots on a logarithmic axis, whose figures `say` writes.
pub(super) fn dots(
    size: Size,
    title: &str,
    rows: &[Dots<'_>],
    say: fn(f64) -> String,
) -> Result<String> {
    let layout = Layout::of(size, 14);
    let values = || {
        rows.iter().flat_map(|(_, sets)| sets).flat_map(|(values, _)| values).filter(|v| **v > 0.0)
    };
    let axis = Axis::of(values().copied());
    let height = 34 + rows.len() as i32 * layout.height;
    draw(size, height, title, |area| {
        axis.draw(area, &layout, height, say)?;
        for (n, (name, sets)) in rows.iter().enumerate() {
            let y = layout.y(n) + 7;
            text(area, layout.label(n), name, INK)?;
            for (values, colour) in sets {
                for value in values.iter().filter(|value| **value > 0.0) {
                    let dot = Circle::new((layout.x(axis.share(*value)), y), 4, colour.filled());
                    area.draw(&dot).map_err(failed)?;
                }
            }
        }
        Ok(())
    })
}

/// How long each phase took: the range from the first to the 99th percentile, the middle half, the median.
pub(super) fn percentiles(size: Size, title: &str, phases: &[PhasePart]) -> Result<String> {
    let layout = Layout::of(size, 14);
    let figure = |phase: &PhasePart| {
        [0.01, 0.25, 0.5, 0.75, 0.99].map(|share| percentile(&phase.steps, share))
    };
    let axis = Axis::of(phases.iter().flat_map(figure));
    let height = 34 + phases.len() as i32 * layout.height;
    draw(size, height, title, |area| {
        axis.draw(area, &layout, height, table::time)?;
        for (n, phase) in phases.iter().enumerate() {
            let y = layout.y(n) + 7;
            let [low, first, middle, third, high] =
                figure(phase).map(|value| layout.x(axis.share(value)));
            text(area, layout.label(n), &phase.name, INK)?;
            line(area, (low, y), (high.max(low + 2), y), phase_colour(n))?;
            fill(area, (first, y - 5), (third.max(first + 2), y + 5), phase_colour(n))?;
            line(area, (middle, y - 8), (middle, y + 8), INK)?;
        }
        Ok(())
    })
}

/// The value that `share` of a histogram does not pass.
fn percentile(steps: &[(f64, f64)], share: f64) -> f64 {
    let total: f64 = steps.iter().map(|(_, count)| count).sum();
    let mut left = total * share;
    for (upto, count) in steps {
        left -= count;
        if left <= 0.0 {
            return *upto;
        }
    }
    steps.last().map_or(1.0, |(upto, _)| *upto)
}

/// Whole powers of ten.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::MAX, 1.0f64);
        for value in values.filter(|value| *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        let low = low.min(high).log10().floor();
        Self { low, high: high.log10().ceil().max(low + 1.0) }
    }

    fn share(&self, value: f64) -> f64 {
        (value.max(1e-9).log10() - self.low) / (self.high - self.low)
    }

    fn draw(
        &self,
        area: &Area<'_>,
        layout: &Layout,
        height: i32,
        say: fn(f64) -> String,
    ) -> Result<()> {
        let mut power = self.low;
        // Where the last word ended: on a phone not every power of ten has room for its own.
        let mut free = i32::MIN;
        while power <= self.high {
            let x = layout.x(self.share(10f64.powf(power)));
            area.draw(&PathElement::new(vec![(x, 0), (x, height - 22)], FAINT)).map_err(failed)?;
            let words = say(10f64.powf(power)).replace(".00", "").replace(".0", "");
            let at = (x - 12).clamp(0, area.dim_in_pixel().0 as i32 - 44);
            if at >= free {
                text(area, (at, height - 18), &words, INK)?;
                free = at + 10 * words.len() as i32 + 8;
            }
            power += 1.0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_histogram() {
        let steps = [(10.0, 50.0), (20.0, 49.0), (100.0, 1.0)];
        assert_eq!(percentile(&steps, 0.5), 10.0);
        assert_eq!(percentile(&steps, 0.75), 20.0);
        assert_eq!(percentile(&steps, 1.0), 100.0);
        assert_eq!(percentile(&[], 0.5), 1.0);
    }

    #[test]
    fn an_axis_covers_its_values() {
        let axis = Axis::of([150.0, 4.0].into_iter());
        assert_eq!((axis.low, axis.high), (0.0, 3.0));
        assert_eq!(axis.share(1000.0), 1.0);
    }
}
