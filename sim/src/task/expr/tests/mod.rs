mod fixture;
mod smoke;
