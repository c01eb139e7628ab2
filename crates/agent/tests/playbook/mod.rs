//! Playbooks: read, checked, followed, cut off at every call of the store and taken up again.

mod cuts;
mod drawn;
mod examples;
mod kit;
mod nodes;
mod random;
mod seed;
mod served;
mod wrong;
