import type { FastifyInstance } from 'fastify'
import { zonePage } from '../../lib/pages/console/zone.ts'
import type { ConsoleMount } from '../../plugins/console.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { ApiError } from './api.ts'
import { type AddPage, ZONE_COOKIE, isKnownZone, readZone } from './page.ts'

/** Seconds for which a browser keeps the choice: a year. */
const LIFE = 365 * 24 * 60 * 60

/** The zones to choose from, and the present one, which may have another of its names. */
const listZones = (zone: string): string[] => [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone'), zone])]

/** The choice of the zone of the console's times. Nobody else's pages change, so it takes no fresh proof. */
export function zonePages (_app: FastifyInstance, add: AddPage, { getConsole, getIssuer }: Pick<ConsoleMount, 'getConsole' | 'getIssuer'>): void {
  add({
    path: '/zone',
    show: ({ request }) => (view, context) => zonePage(view, listZones(readZone(request)), context),
    forms: {
      set: {
        isFree: true,
        submit ({ request }, reply) {
          const zone = readField(request, 'zone')
          if (!isKnownZone(zone)) throw new ApiError('ErrParam', 'zone: must be a time zone such as Europe/Berlin')
          const secure = getIssuer().protocol === 'https:' ? '; Secure' : ''
          reply.header('set-cookie', `${ZONE_COOKIE}=${zone}; Path=${getConsole()}; Max-Age=${LIFE}; HttpOnly; SameSite=Lax${secure}`)
          return Promise.resolve({ done: 'zone' as const })
        }
      }
    }
  })
}
