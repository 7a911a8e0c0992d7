import type { Happening } from '../events/types.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Change } from '../store/port.ts'
import { compareKeys } from './client-keys.ts'
import { compareSecrets } from './named-secrets.ts'

/** A change of a client, and the fields that the caller has set. */
export type Decision = Change<ClientRecord> & { changed: string[] }

/** The events of a change of a client. */
export function listHappenings (record: ClientRecord, { set = {}, unset = [], changed }: Decision): Happening[] {
  const { id, userId } = record
  const user_id = userId ?? null
  const { added, removed } = compareSecrets(record, { set, unset })
  const keys = compareKeys(record, { set, unset })
  return [
    ...(added.length === 0 ? [] : [{ type: 'client.secret_added', id, user_id }] as const),
    ...(removed.length === 0 ? [] : [{ type: 'client.secret_removed', id, user_id }] as const),
    ...(keys.added.length + keys.removed.length === 0 ? [] : [{ type: 'client.keys_changed', id, user_id }] as const),
    ...(changed.length === 0 ? [] : [{ type: 'client.updated', id, user_id, changed }] as const),
    ...('secret' in set ? [{ type: 'client.secret_changed', id, user_id }] as const : [])
  ]
}
