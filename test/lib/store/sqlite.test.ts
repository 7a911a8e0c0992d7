import t from 'tap'
import { openStore } from '../../../lib/store/index.ts'
import { runConformance } from './conformance.ts'

const directory = t.testdir()

await runConformance(t, {
  name: 'sqlite:FILE',
  open: (options, place) => openStore(`sqlite:${directory}/${place}/store.db`, options)
})

await runConformance(t, {
  name: 'sqlite::memory:',
  persistent: false,
  open: (options) => openStore('sqlite::memory:', options)
})
