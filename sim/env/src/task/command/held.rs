//! Commands for somebody who watches: what they are, and values that he gives instead of draws.

use super::Commands;
use ostler_engine::state::Tables;
use ostler_lang::draw::Draw;

/// A command, as sliders need it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// Its name.
    pub name: String,
    /// Its unit, as it is written.
    pub unit: String,
    /// Its first component among those of all commands.
    pub first: usize,
    /// Least and greatest value of each component; of a distribution without ends, what nearly
    /// all draws lie between.
    pub ranges: Vec<[f32; 2]>,
}

impl CommandSpec {
    /// Whether it asks for a place: three lengths.
    pub fn is_place(&self) -> bool {
        self.unit == "m" && self.ranges.len() == 3
    }
}

impl Commands {
    /// All of them, in order.
    pub(crate) fn specs(&self) -> Vec<CommandSpec> {
        let mut first = 0;
        let mut all = Vec::with_capacity(self.scope.len());
        for (name, size, unit) in &self.scope {
            let own = self.components.iter().skip(first).take(*size);
            let mut ranges: Vec<[f32; 2]> =
                own.map(|c| c.draw.as_ref().map_or([0.0; 2], Draw::nearly_all)).collect();
            if let Some(course) = self.courses.iter().find(|c| c.first == first) {
                let own = ranges.iter_mut().zip(course.ranges);
                own.for_each(|(range, theirs)| *range = theirs);
            }
            all.push(CommandSpec { name: name.clone(), unit: unit.clone(), first, ranges });
            first += size;
        }
        all
    }

    /// Writes tables in which the command whose first component is `first` is always `values`, or
    /// as `own` has it.
    pub(in crate::task) fn hold(
        &self,
        tables: &mut Tables,
        own: &Tables,
        first: usize,
        values: Option<&[f32]>,
    ) {
        let size = self.specs().into_iter().find(|s| s.first == first);
        let all = first..first + size.map_or(0, |s| s.ranges.len());
        tables.command_interval[all.clone()].copy_from_slice(&own.command_interval[all.clone()]);
        tables.command_timer[all.clone()].copy_from_slice(&own.command_timer[all.clone()]);
        // Rows of draws begin with those of commands.
        tables.draw_chance[all.clone()].copy_from_slice(&own.draw_chance[all.clone()]);
        tables.draw_low[all.clone()].copy_from_slice(&own.draw_low[all.clone()]);
        tables.draw_high[all.clone()].copy_from_slice(&own.draw_high[all.clone()]);
        let course = self.courses.iter().position(|c| c.first == first);
        if let Some(k) = course {
            let four = 4 * k..4 * k + 4;
            tables.course_low[four.clone()].copy_from_slice(&own.course_low[four.clone()]);
            tables.course_high[four.clone()].copy_from_slice(&own.course_high[four.clone()]);
            tables.course_share[four.clone()].copy_from_slice(&own.course_share[four]);
            tables.course_dead[k] = own.course_dead[k];
        }
        let Some(values) = values else { return };
        for (c, &value) in all.zip(values) {
            // Drawn in every step, from a range of one number.
            tables.command_interval[c] = 1;
            tables.command_timer[c] = ostler_engine::kernels::NOWHERE;
            if course.is_none() {
                tables.draw_chance[c] = ostler_engine::kernels::CHANCE_UNIFORM;
                tables.draw_low[c] = value;
                tables.draw_high[c] = value;
            }
        }
        if let Some(k) = course {
            let four = 4 * k..4 * k + 4;
            for (i, &value) in values.iter().enumerate().take(3) {
                tables.course_low[4 * k + i] = value;
                tables.course_high[4 * k + i] = value;
            }
            // No heading, standing, going ahead or direction of the world.
            tables.course_share[four].fill(0.0);
            tables.course_dead[k] = 0.0;
        }
    }
}
