import type { Event } from '../../schemas/event.ts'
import type { ClientRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import type { EventType } from './types.ts'

/** An event in the form that is shown to the user of the account. */
export interface OwnEvent {
  type: EventType
  time: string
  failed: boolean
  /** Through a page, through an app or the API, or by an operator of the service. */
  by: 'page' | 'app' | 'operator'
  address?: string
  /** The client that the event is about. It has no name if it was deleted. */
  client?: { name?: string }
  granted?: string[]
  removed?: string[]
  count?: number
}

/** Whether an administrator, the command line or the service itself acted, and not the user by their own pages and apps. */
function isOperator ({ actor: { via, user_id: actor }, user_id }: Event): boolean {
  return via === 'cli' || via === 'system' || (via === 'api' && actor !== undefined && actor !== user_id)
}

/** The client to show to the user. The client through which an operator acted is not shown. */
function findClientId (event: Event): string | undefined {
  const { actor, target, client_id } = event
  return isOperator(event) && target.kind !== 'client' && client_id === actor.client_id ? undefined : client_id
}

function showOwn (event: Event, names: ReadonlyMap<string, string | undefined>): OwnEvent {
  const { type, time, outcome, actor: { via }, address, granted, removed, count } = event
  const by = isOperator(event) ? 'operator' : via === 'page' ? 'page' : 'app'
  const client_id = findClientId(event)
  const name = client_id === undefined ? undefined : names.get(client_id)
  return {
    type: type as EventType,
    time,
    failed: outcome === 'failure',
    by,
    // The address of an operator is not shown to the user.
    ...(by !== 'operator' && address !== undefined && { address }),
    ...(client_id !== undefined && { client: name === undefined ? {} : { name } }),
    ...(granted !== undefined && { granted }),
    ...(removed !== undefined && { removed }),
    ...(count !== undefined && { count })
  }
}

/** Events of an account for its user: with the names of clients, and without the addresses and clients of operators. */
export async function showOwnEvents (store: Store, events: readonly Event[]): Promise<OwnEvent[]> {
  const clients = store.collection<ClientRecord>('clients')
  const ids = new Set(events.map(findClientId).filter((id) => id !== undefined))
  const names = new Map(await Promise.all([...ids].map(async (id) => [id, (await clients.get(id))?.name] as const)))
  return events.map((event) => showOwn(event, names))
}
