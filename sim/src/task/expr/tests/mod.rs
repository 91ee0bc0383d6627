mod errors;
mod fixture;
mod golden;
mod random;
mod smoke;
