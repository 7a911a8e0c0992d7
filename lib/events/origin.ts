import { AsyncLocalStorage } from 'node:async_hooks'
import type { Event } from '../../schemas/event.ts'

/** Who asks for the work that is being done, and how. */
export interface Origin {
  via: Event['actor']['via']
  address?: string | undefined
  request_id?: string | undefined
  /** The user, client and token, which may become known later than the rest. */
  readCaller?: () => Omit<Event['actor'], 'via'> | undefined
}

const storage = new AsyncLocalStorage<Origin | undefined>()

/** Does work, with everything that it begins, on behalf of this origin; undefined: of no request. */
export function runFor<T> (origin: Origin | undefined, work: () => T): T {
  return storage.run(origin, work)
}

/** Says who is behind the present request, where no guard has. */
export function nameCaller (caller: Omit<Event['actor'], 'via'>): void {
  const origin = storage.getStore()
  if (origin !== undefined) origin.readCaller = () => caller
}

/** The origin of the present work. Undefined outside of requests. */
export function findOrigin (): Origin | undefined {
  return storage.getStore()
}
