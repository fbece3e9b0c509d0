"""The pure core: values in, values out. No module here imports anything that does I/O."""
