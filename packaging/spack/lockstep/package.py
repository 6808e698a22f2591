# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

import os

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Lockstep(CargoPackage):
    """Find the task that fell out of step, and the place, in an unmodified parallel program."""

    # The archive lies in the directory where spack is started, or in a mirror.
    manual_download = True
    url = f"file://{os.getcwd()}/lockstep-@VERSION@.tar.gz"

    license("MIT OR Apache-2.0", checked_by="lockstep")

    version("@VERSION@", sha256="@SHA256@")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")

    requires("platform=linux target=x86_64:", msg="lockstep records x86-64 Linux programs")

    build_directory = "crates/cli"
