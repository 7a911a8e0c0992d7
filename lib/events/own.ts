import type { Event } from '../../schemas/event.ts'
import type { ClientRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import type { EventType } from './types.ts'

/** An event as the person sees it whose account it is about. */
export interface OwnEvent {
  type: EventType
  time: string
  failed: boolean
  /** Through a page, through an app or the API, or by an operator of the service. */
  by: 'page' | 'app' | 'operator'
  address?: string
  /** The client that it is about. Without a name it was deleted. */
  client?: { name?: string }
  granted?: string[]
  removed?: string[]
  count?: number
}

/** Whether an administrator, the command line or the service itself did it, and not somebody at the account's own pages and apps. */
function isOperator ({ actor: { via, user_id: actor }, user_id }: Event): boolean {
  return via === 'cli' || via === 'system' || (via === 'api' && actor !== undefined && actor !== user_id)
}

/** The client that a person is told of. That of an operator is nobody else's business. */
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
    // Where an operator sits is no matter of the person's.
    ...(by !== 'operator' && address !== undefined && { address }),
    ...(client_id !== undefined && { client: name === undefined ? {} : { name } }),
    ...(granted !== undefined && { granted }),
    ...(removed !== undefined && { removed }),
    ...(count !== undefined && { count })
  }
}

/** Events of an account as its person sees them: with the names of clients, and without what is an operator's own. */
export async function showOwnEvents (store: Store, events: readonly Event[]): Promise<OwnEvent[]> {
  const clients = store.collection<ClientRecord>('clients')
  const ids = new Set(events.map(findClientId).filter((id) => id !== undefined))
  const names = new Map(await Promise.all([...ids].map(async (id) => [id, (await clients.get(id))?.name] as const)))
  return events.map((event) => showOwn(event, names))
}
