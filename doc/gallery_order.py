"""The order of the examples: from one analysis to teams, streams, networks and checks."""

STORIES = (
    "plot_raw_frame",
    "plot_least_epsilon",
    "plot_search",
    "plot_additive_effects",
    "plot_ledger",
    "plot_report",
    "plot_csv_stream",
    "plot_online_bike",
    "plot_mi_flights",
    "plot_mi_logistic",
    "plot_hospitals",
    "distributed_mpi",
    "plot_audit",
    "plot_papers",
    "plot_calibrations",
    "plot_scalar_noise",
)


class StoryOrder:
    """Key of an example's file: its place in ``STORIES``, new ones last."""

    def __init__(self, folder):
        self.folder = folder

    def __repr__(self):
        return "StoryOrder()"

    def __call__(self, file):
        name = file.removesuffix(".py")
        return (STORIES.index(name) if name in STORIES else len(STORIES), name)
