"""Every schema this product ever had, as explicit steps. They only go forward: a step back is a restored backup."""
