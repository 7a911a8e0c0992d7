import { AsyncLocalStorage } from 'node:async_hooks'
import type { Event } from '../../schemas/event.ts'

/** The caller that requested the current work, and how. */
export interface Origin {
  via: Event['actor']['via']
  address?: string | undefined
  /** The User-Agent field of the request. It is not stored: see lib/device.ts. */
  agent?: string | undefined
  request_id?: string | undefined
  /** The client that the sign-in of the request is for. */
  client_id?: string | undefined
  /** The user, client and token, which may become known later than the rest. */
  readCaller?: () => Omit<Event['actor'], 'via'> | undefined
}

const storage = new AsyncLocalStorage<Origin | undefined>()

/** Runs work, and everything that it starts, on behalf of this origin. Undefined: on behalf of no request. */
export function runFor<T> (origin: Origin | undefined, work: () => T): T {
  return storage.run(origin, work)
}

/** Names the caller of the current request, where no guard has done so. */
export function nameCaller (caller: Omit<Event['actor'], 'via'>): void {
  const origin = storage.getStore()
  if (origin !== undefined) origin.readCaller = () => caller
}

/** Names the client that the sign-in of the current request is for. */
export function nameClient (client_id: string | undefined): void {
  const origin = storage.getStore()
  if (origin !== undefined) origin.client_id = client_id
}

/** The origin of the current work. Undefined outside of requests. */
export function findOrigin (): Origin | undefined {
  return storage.getStore()
}
