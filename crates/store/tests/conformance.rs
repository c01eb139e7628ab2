//! One suite for every store, as it is and with each of its calls failing in turn.
//!
//! A store joins with one line at the end of this file.

use crate::suite;
use crate::suite::kinds;

use kinds::{Files, Kind, Memory, Postgres, Redis};
use komado_store::Store;
use suite::retried::Retried;

/// Runs `case` once as it is, then once for each call, which fails and is made again.
fn with_each_call_failing<K: Kind>(case: fn(&dyn Store)) {
    let run = |at: u64| {
        let kind = K::light();
        let store = Retried::new(kind.open(), at, kind.reopen());
        case(&store);
        store.calls()
    };
    let calls = run(0);
    assert!(calls > 0);
    // Of very many calls every few: they are the same few, over and over.
    let step = usize::try_from(calls / K::FAILING + 1).unwrap();
    for at in (1..=calls).step_by(step) {
        run(at);
    }
}

macro_rules! suite {
    (alone: $($alone:ident::$only:ident),+; two: $($pair:ident::$both:ident),+; each: $($room:ident::$case:ident),+ $(,)?) => {
        macro_rules! conforms {
            ($name:ident, $kind:ty) => {
                mod $name {
                    use super::*;
                    $(#[test] fn $only() { suite::$alone::$only(&<$kind>::empty().open()) })+
                    $(#[test] fn $both() {
                        let kind = <$kind>::empty();
                        suite::$pair::$both(&kind.open(), &*kind.reopen()());
                    })+
                    $(#[test] fn $case() { suite::$room::$case(&<$kind>::empty().open()) })+

                    mod with_each_call_failing {
                        use super::*;
                        $(#[test] fn $case() { with_each_call_failing::<$kind>(suite::$room::$case) })+
                    }
                }
            };
        }
    };
}

suite! {
    alone:
        entries::many_read_a_whole_beginning_while_one_writes,
        folding::so_is_that_of_any_conversation,
        queue::who_is_not_heard_of_loses_the_job_to_the_next,
        queue::a_job_whose_holder_is_not_heard_of_waits_and_may_be_put_back,
        queue::a_job_comes_back_when_its_pause_is_over,
        watch::what_is_done_is_heard,
        watch::nothing_is_heard_where_nothing_is_done,
        watch::of_many_entries_the_last_is_heard_or_that_something_was_missed;
    two:
        queue::two_takers_never_have_the_same_job,
        queue::of_two_who_bring_the_same_job_one_does,
        watch::what_is_done_through_another_handle_is_heard,
        watch::everyone_hears;
    each:
        sessions::a_session_is_listed_as_it_was_made,
        sessions::an_id_is_given_once,
        sessions::nothing_is_made_under_an_id_that_is_none,
        sessions::sessions_come_in_the_order_they_were_made_page_by_page,
        sessions::each_filter_keeps_what_it_names_and_they_add_up,
        sessions::ids_are_of_any_script,
        sessions::states_change_and_counters_add_up,
        sessions::an_ended_session_refuses_writers_until_it_is_opened_again,
        sessions::a_session_that_is_being_written_is_neither_ended_nor_removed,
        sessions::a_removed_session_is_gone_and_its_id_free,
        sessions::what_is_not_there_is_named,
        threads::threads_are_listed_by_age_with_the_root_first,
        threads::no_thread_is_listed_before_one_it_goes_on_from,
        threads::a_thread_name_is_given_once_and_its_base_must_be_there,
        threads::a_fork_shares_what_came_before_number_for_number,
        tree::a_branch_is_listed_as_it_was_put_and_put_again_in_its_place,
        tree::branches_come_from_the_top_then_by_age,
        tree::unsettled_are_those_held_and_those_nobody_was_told_of,
        tree::the_children_of_a_thread_are_listed_without_theirs,
        tree::a_parent_is_told_anew_of_all_its_children_and_of_no_others,
        tree::a_branch_that_never_came_to_be_is_dropped,
        tree::words_wait_in_the_order_they_were_told_until_they_are_taken,
        tree::branches_and_mail_go_with_their_session,
        tree::a_tree_belongs_to_a_session_that_is_there,
        tree::a_child_sees_the_slices_of_all_threads_above,
        tree::a_thread_looks_up_others_as_they_are_now,
        entries::what_is_appended_is_there_line_for_line,
        entries::an_append_says_what_it_comes_after,
        entries::a_batch_is_appended_whole_or_not_at_all,
        entries::a_second_writer_is_told_who_the_first_is,
        entries::a_rewritten_line_is_changed_and_no_other,
        entries::a_line_is_not_rewritten_to_something_else,
        entries::a_fork_sees_the_rewritten_line,
        folding::a_view_folded_from_the_store_is_that_of_the_book,
        blobs::a_blob_comes_back_as_it_was_put,
        blobs::what_is_no_blob_is_not_found,
        blobs::a_sweep_takes_what_nobody_wants,
        letters::a_letter_is_a_file_until_it_is_answered,
        letters::only_a_writer_sends_letters,
        letters::a_lesson_is_kept_under_its_name_and_changed_in_one_step,
        places::a_moment_is_found_by_its_name_and_noted_once,
        places::of_moments_with_one_name_the_newest_comes_first,
        places::moments_go_with_their_session,
        places::of_very_many_moments_with_one_name_only_the_newest_are_given,
        shelves::what_was_put_on_a_shelf_is_found_by_its_terms,
        shelves::the_best_passage_stands_for_its_entry,
        shelves::a_term_worth_more_and_a_shorter_passage_come_first_and_of_equals_the_latest,
        shelves::each_filter_keeps_what_it_names,
        shelves::entries_with_all_of_some_terms_come_page_by_page_the_last_first,
        shelves::what_stands_beside_an_entry_is_told_with_its_distance,
        shelves::who_comes_too_late_is_told_so_and_nothing_is_added_twice,
        shelves::an_entry_that_is_half_in_is_finished_before_another_begins,
        shelves::a_cleared_shelf_is_empty_and_takes_nothing_from_who_opened_it_before,
        shelves::a_shelf_goes_with_its_session,
        queue::jobs_are_taken_in_the_order_they_came_as_they_were_put,
        queue::a_job_of_another_queue_stands_here_as_it_stood_there,
        queue::a_key_and_a_session_are_in_the_queue_once,
        queue::a_job_that_is_done_leaves_the_queue_and_may_come_again,
        queue::a_job_that_is_to_be_tried_again_has_its_old_place_and_says_why,
        queue::a_job_that_is_given_back_counts_no_try_and_keeps_its_reason,
        queue::a_job_that_was_laid_aside_is_kept_until_somebody_decides,
        queue::what_somebody_works_on_is_not_put_back_and_may_be_taken_out,
        queue::jobs_are_listed_page_by_page,
        queue::a_pause_of_any_length_is_one,
        rows::sessions_are_found_by_when_they_were_made_and_changed,
        rows::a_row_of_another_store_is_taken_over_but_for_what_it_was_made_with,
        rows::a_row_does_not_end_a_session_that_is_being_written,
        vitals::a_store_tells_what_it_holds,
        vitals::a_store_tells_how_many_sessions_this_process_writes,
}

conforms!(memory, Memory);
conforms!(in_files, Files);
conforms!(on_postgres, Postgres);
conforms!(on_redis, Redis);
