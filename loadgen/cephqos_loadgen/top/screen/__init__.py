"""What is on the screen. `view` is what the user chose; `sections` and `page` turn it and the
picture into lines, which `layout` and `text` fit; `app` shows lines and takes keys."""
