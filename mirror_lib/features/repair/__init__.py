"""Manual repairs: set positions, rebuild maps, write lost tombstones, accept another cluster."""
