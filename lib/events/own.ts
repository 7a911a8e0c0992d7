import type { Event } from '../../schemas/event.ts'
import { defined } from '../defined.ts'
import type { ClientRecord } from '../records/client.ts'
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
  /** The sign-in method that it was done with, or that it is about: `name` of another provider. */
  method?: { kind: NonNullable<Event['method']>['kind'], name?: string }
  /** The strength of a sign-in. */
  acr?: string
  /** The client that the event is about. It has no name if it was deleted. */
  client?: { name?: string }
  granted?: string[]
  removed?: string[]
  count?: number
}

/** Whether an administrator, the command line or the service itself acted, and not the user by their own pages and apps. */
function isOperator ({ actor: { via, user_id: actor }, user_id }: Event): boolean {
  return via === 'cli' || via === 'system' || ((via === 'api' || via === 'console') && actor !== undefined && actor !== user_id)
}

/** The client to show to the user. The client through which an operator acted is not shown. */
function findClientId (event: Event): string | undefined {
  const { actor, target, client_id } = event
  return isOperator(event) && target.kind !== 'client' && client_id === actor.client_id ? undefined : client_id
}

/** How names of other providers are found. Undefined for one that there is no more. */
type NameUpstream = (id: string) => string | undefined

function showOwn (event: Event, names: ReadonlyMap<string, string | undefined>, nameUpstream: NameUpstream): OwnEvent {
  const { type, time, outcome, actor: { via }, address, granted, removed, count, method, acr, via: identity } = event
  const by = isOperator(event) ? 'operator' : via === 'page' || via === 'console' ? 'page' : 'app'
  const client_id = findClientId(event)
  const name = client_id === undefined ? undefined : names.get(client_id)
  return {
    type: type as EventType,
    time,
    failed: outcome === 'failure',
    by,
    // The address of an operator is not shown to the user.
    address: by !== 'operator' && address !== undefined ? address : undefined,
    method: method && defined({ kind: method.kind, name: identity && (nameUpstream(identity.upstream) ?? identity.upstream) }),
    acr,
    client: client_id === undefined ? undefined : name === undefined ? {} : { name },
    granted,
    removed,
    count
  }
}

/** Events of an account for its user: with the names of clients, and without the addresses and clients of operators. */
export async function showOwnEvents (store: Store, events: readonly Event[], nameUpstream: NameUpstream = () => undefined): Promise<OwnEvent[]> {
  const clients = store.collection<ClientRecord>('clients')
  const ids = new Set(events.map(findClientId).filter((id) => id !== undefined))
  const names = new Map(await Promise.all([...ids].map(async (id) => [id, (await clients.get(id))?.name] as const)))
  return events.map((event) => showOwn(event, names, nameUpstream))
}
