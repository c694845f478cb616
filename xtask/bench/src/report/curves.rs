//! Cost against size or against CPUs, both kernels. Costs and sizes are on logarithmic axes, CPUs on a linear one.

use anyhow::Result;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::Curve;
use super::chart::{ALEA, FAINT, INK, LINUX, Size, draw, failed};

/// What a curve is drawn over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Sizes,
    Cpus,
}

/// One small plot.
pub(super) fn curve(curve: &Curve, over: Over) -> Result<String> {
    let points = || curve.linux.iter().chain(&curve.alea).filter(|(n, y)| *n > 0.0 && *y > 0.0);
    let ends = |pick: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = points().map(pick).collect();
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        (low, values.iter().copied().fold(1.0, f64::max))
    };
    let ((x0, x1), (y0, y1)) = (ends(|p| p.0), ends(|p| p.1));
    // Whole powers of ten, and at least one of them.
    let y0 = 10f64.powf(y0.log10().floor());
    let y = y0..10f64.powf(y1.log10().ceil()).max(y0 * 10.0);
    match over {
        Over::Sizes => plot(curve, "N", 6, (x0..x1.max(x0 * 10.0)).log_scale(), y),
        Over::Cpus => plot(curve, "CPUs", x1 as usize, 1.0..x1.max(2.0), y),
    }
}

fn plot<X>(
    curve: &Curve,
    axis: &str,
    labels: usize,
    x: X,
    y: std::ops::Range<f64>,
) -> Result<String>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    draw(Size::Narrow, 246, &format!("cost against {axis}: {}", curve.name), |area| {
        let font = ("sans-serif", 14).into_font().color(&INK);
        let mut chart = ChartBuilder::on(area)
            .margin(6)
            .margin_top(14)
            .margin_right(18)
            .x_label_area_size(40)
            .y_label_area_size(48)
            .build_cartesian_2d(x, y.log_scale())
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style(font)
            .x_label_formatter(&|n| short(*n))
            .y_label_formatter(&|cost| short(*cost))
            .x_desc(axis)
            .x_labels(labels)
            .y_labels(6)
            .draw()
            .map_err(failed)?;
        for (points, colour) in [(&curve.linux, LINUX), (&curve.alea, ALEA)] {
            let line = LineSeries::new(points.iter().copied(), colour.stroke_width(2));
            chart.draw_series(line.point_size(3)).map_err(failed)?;
        }
        Ok(())
    })
}

/// `20000` as `20 k`.
fn short(value: f64) -> String {
    xtask_host::table::count(value).replace(".00", "").replace(".0", "")
}
