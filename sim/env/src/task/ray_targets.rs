//! What rays of scans may meet, as tables of the kernels (`kernels/env/rays.cuh`).

use ostler_base::boxes::{Node, Tree, around};
use ostler_engine::state::{Sizes, Tables};
use ostler_lang::expr::Scan;
use ostler_model::{GeomKind, Model};
use std::collections::BTreeMap;
use std::ops::Range;

/// Triangles in a box of a tree.
const IN_A_LEAF: usize = 4;

/// Shapes of all scans, and trees of boxes around their triangles.
#[derive(Debug, Clone, Default)]
pub(super) struct RayTargets {
    /// The end of each scan's shapes.
    ends: Vec<usize>,
    /// The geom, and its nodes.
    met: Vec<(usize, Range<usize>)>,
    /// Of all trees; their items are `triangles`.
    nodes: Vec<Node>,
    triangles: Vec<[[f32; 3]; 3]>,
}

impl RayTargets {
    pub(super) fn new(model: &Model, scans: &[Scan]) -> Self {
        let mut targets = Self::default();
        // One asset may be that of many geoms.
        let (mut meshes, mut fields) = (BTreeMap::new(), BTreeMap::new());
        for scan in scans {
            for &g in &scan.meets {
                let nodes: &Range<usize> = match model.geoms[g].kind {
                    GeomKind::Mesh(i) => meshes
                        .entry(i)
                        .or_insert_with(|| targets.surface(model.meshes[i].triangles())),
                    GeomKind::Hfield(i) => fields
                        .entry(i)
                        .or_insert_with(|| targets.surface(model.hfields[i].triangles())),
                    _ => &(0..0),
                };
                targets.met.push((g, nodes.clone()));
            }
            targets.ends.push(targets.met.len());
        }
        targets
    }

    /// Enters a surface: its nodes.
    fn surface(&mut self, triangles: impl Iterator<Item = [[f32; 3]; 3]>) -> Range<usize> {
        let triangles: Vec<_> = triangles.collect();
        let bounds = |t: &[[f32; 3]; 3]| around(t.map(|p| p.map(f64::from))).unwrap_or_default();
        let tree = Tree::new(&triangles.iter().map(bounds).collect::<Vec<_>>(), IN_A_LEAF);
        let (first, begin) = (self.nodes.len(), self.triangles.len());
        self.nodes.extend(tree.nodes.into_iter().map(|node| Node {
            next: first + node.next,
            items: begin + node.items.start..begin + node.items.end,
            ..node
        }));
        self.triangles.extend(tree.order.iter().map(|i| triangles[*i]));
        first..self.nodes.len()
    }

    /// Its part of the sizes.
    pub(super) fn size(&self, sizes: &mut Sizes) {
        sizes.nmet = self.met.len();
        sizes.nsurface = self.nodes.len();
        sizes.ntriangle = self.triangles.len();
    }

    pub(super) fn enter(&self, model: &Model, t: &mut Tables) {
        t.scan_met = self.ends.iter().map(|end| *end as u32).collect();
        for (g, nodes) in &self.met {
            let geom = &model.geoms[*g];
            t.met_kind.push(geom.kind.code() as u32);
            t.met_body.push(geom.body as u32);
            t.met_at.extend(geom.pos.map(|x| x as f32));
            t.met_turn.extend(geom.quat.map(|x| x as f32));
            t.met_size.extend(geom.size.map(|x| x as f32));
            t.met_first.push(nodes.start as u32);
            t.met_end.push(nodes.end as u32);
        }
        for node in &self.nodes {
            t.surface_box.extend(node.bounds.iter().flatten().map(|x| *x as f32));
            t.surface_next.push(node.next as u32);
            t.surface_first.push(node.items.start as u32);
            t.surface_end.push(node.items.end as u32);
        }
        t.triangle = self.triangles.iter().flatten().flatten().copied().collect();
    }
}
