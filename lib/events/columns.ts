import type { Event } from '../../schemas/event.ts'

/** The columns of events as CSV. */
export const EVENT_COLUMNS = [
  'cursor', 'id', 'time', 'type', 'outcome', 'count', 'counts', 'via', 'actor_user_id', 'actor_client_id', 'actor_token_id', 'target_kind', 'target_id',
  'user_id', 'client_id', 'address', 'request_id', 'changed', 'granted', 'removed', 'refusal', 'upstream', 'subject', 'accounts',
  'reason', 'method_kind', 'method_id', 'methods', 'amr', 'acr', 'addresses', 'mail', 'failure'
] as const

/** An event with a value for each column that it has. */
export function toEventRow (
  { actor, target, changed, granted, removed, refusal, counts, accounts, via, method, methods, amr, ...rest }: Event
): { [column: string]: string | number | undefined } {
  return {
    ...rest,
    counts: counts && Object.entries(counts).map(([result, count]) => `${result}=${count}`).join(' '),
    accounts: accounts?.map(({ user_id, count }) => `${user_id}=${count}`).join(' '),
    via: actor.via,
    actor_user_id: actor.user_id,
    actor_client_id: actor.client_id,
    actor_token_id: actor.token_id,
    target_kind: target.kind,
    target_id: target.id,
    changed: changed?.join(' '),
    granted: granted?.join(' '),
    removed: removed?.join(' '),
    refusal: refusal && [refusal.rule, refusal.value].join(' '),
    upstream: via?.upstream,
    subject: via?.subject,
    method_kind: method?.kind,
    method_id: method?.id,
    methods: methods?.map(({ kind, id = '' }) => `${kind}=${id}`).join(' '),
    amr: amr?.join(' ')
  }
}
