mod emitted;
mod errors;
mod fixture;
mod golden;
mod page;
mod random;
mod smoke;
mod view;
