"""Trees and timelines that Proton wrote."""
