"""Why a class of an OSD gets no more: each cause, its evidence, and which of them leads."""
