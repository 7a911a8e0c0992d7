import type { FastifyInstance } from 'fastify'
import { FILTERS, eventsPage } from '../../lib/pages/console/events.ts'
import { findStartOfDay } from '../../lib/zone.ts'
import type { Event } from '../../schemas/event.ts'
import { type AddPage, type Desk, readZone } from './page.ts'
import { readText } from './people.ts'

/** Events on a page of the list. */
const LIMIT = 25

type Filters = Record<typeof FILTERS[number], string>

const readFilters = (desk: Pick<Desk, 'request'>) => Object.fromEntries(FILTERS.map((name) => [name, readText(desk, name).trim()])) as Filters

const COMMANDS = ['event list', 'event list --type user.* --user ACCOUNT --client ID', 'event export --file FILE']

/** The list of events. */
export function eventPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/events',
    section: 'events',
    needs: 'listEvents',
    commands: () => COMMANDS,
    async show (desk) {
      const filters = readFilters(desk)
      const zone = readZone(desk.request)
      const [after, before] = [readText(desk, 'after', 4096), readText(desk, 'before', 4096)]
      const list = await desk.read<Event[]>('listEvents', {
        path: '/event/list',
        query: { ...filters, from: findStartOfDay(filters.from, zone), to: findStartOfDay(filters.to, zone, 1), limit: String(LIMIT), after, before }
      })
      return (view, context) => eventsPage(view, {
        events: list?.data, filters, after: list?.after, before: list?.before, isFirst: after === '' && before === ''
      }, context)
    }
  })
}
