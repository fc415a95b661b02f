"""An implementation of the link written from spec/acp.md alone; see ../README.md."""
