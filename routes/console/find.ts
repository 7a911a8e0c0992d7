import type { FastifyInstance } from 'fastify'
import { findPage } from '../../lib/pages/console/find.ts'
import type { FindHit } from '../../schemas/answers.ts'
import type { AddPage } from './page.ts'
import { readText } from './people.ts'

/** The answers of the search box. */
export function findPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/find',
    needs: 'find',
    commands: () => ['find TEXT'],
    async show (desk) {
      const sought = readText(desk, 'q').trim()
      const hits = sought === '' ? [] : (await desk.call<{ hits: FindHit[] }>({ path: '/find', query: { q: sought } })).data.hits
      return (view, context) => findPage(view, { hits }, context)
    }
  })
}
