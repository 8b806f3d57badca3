log { level = "info" }
