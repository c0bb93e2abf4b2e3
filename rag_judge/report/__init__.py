"""What people read: the terminal lines and the page of one run, in English and Chinese. No number is computed here."""
