"""What pages show; chapters import it through `lib.chapter`."""
