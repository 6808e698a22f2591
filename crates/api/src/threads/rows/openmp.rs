//! OpenMP as the standard has it; in Fortran with an underscore behind.

use super::Row;
use crate::threads::meaning::Does::*;
use crate::threads::meaning::Lock::{OpenMp, OpenMpNest};

pub(super) const ROWS: &[Row] = rows! {
    "omp_set_lock" => [Take(OpenMp)];
    "omp_test_lock" => [Take(OpenMp), None];
    "omp_unset_lock" => [Give(OpenMp)];
    "omp_set_nest_lock" => [Take(OpenMpNest)];
    "omp_test_nest_lock" => [Take(OpenMpNest), None];
    "omp_unset_nest_lock" => [Give(OpenMpNest)];
    "omp_init_*lock*" "omp_destroy_*lock" => [Object];
    "omp_fulfill_event" => [Notify];
    "omp_get_wtime" => [Clock];
    "omp_get_*" "omp_in_*" => [Query];
};
